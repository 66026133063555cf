"""Counts watched storages that expire inside a garbage collection. Nothing more: nothing can be collected from within one."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any, Protocol

from lifetime.heap.graph import StorageId

MOST = 256
"""So many storages are looked at before and after each collection, the youngest ones: 40 us at most."""


class Weak(Protocol):
    """A weak reference to a storage, as `StorageWeakRef` is."""

    def expired(self) -> bool: ...


class Collected:
    """`count` storages have died in collections so far: a Python cycle held them."""

    def __init__(self) -> None:
        self.count = 0
        self._watched: dict[StorageId, Weak] = {}
        self._alive: set[StorageId] = set()
        self._died: set[StorageId] = set()

    def install(self) -> None:
        gc.callbacks.append(self._on_collection)

    def remove(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def watch(self, references: Iterable[tuple[StorageId, Weak]]) -> None:
        """The storages of interest from now on."""
        self._watched = dict(references)

    def take(self) -> set[StorageId]:
        """Those that died in a collection since the last call."""
        died, self._died = self._died, set()
        return died

    def _on_collection(self, phase: str, info: Any) -> None:
        alive = {key for key, reference in self._watched.items() if not reference.expired()}
        if phase == "stop":
            died = self._alive - alive
            self._died |= died
            self.count += len(died)
        self._alive = alive

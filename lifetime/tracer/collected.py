"""Counts watched storages that expire inside a garbage collection. Nothing more: nothing can be collected from within one."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, Protocol

MOST = 256
"""So many storages are looked at before and after each collection, the youngest ones: 40 us at most."""


class Weak(Protocol):
    """A weak reference to a storage, as `StorageWeakRef` is."""

    def expired(self) -> bool: ...


class Collected:
    """`count` storages have died in collections so far: a Python cycle held them."""

    def __init__(self) -> None:
        self.count = 0
        self._watched: list[Weak] = []
        self._alive = 0

    def install(self) -> None:
        gc.callbacks.append(self._on_collection)

    def remove(self) -> None:
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)

    def watch(self, references: Sequence[Weak]) -> None:
        """The storages of interest from now on, the youngest last."""
        self._watched = list(references[-MOST:])

    def _on_collection(self, phase: str, info: Any) -> None:
        alive = sum(not one.expired() for one in self._watched)
        if phase == "stop":
            self.count += max(0, self._alive - alive)
        self._alive = alive

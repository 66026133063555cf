"""Which of the watched storages are dead: asked in a forked child after something was let go."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap.graph import StorageId

_OURS = 2
"""References to a wrapper that only we hold, as `sys.getrefcount` counts: the dict's and the argument's."""


class Deaths:
    """The storages under watch, by C++ weak references that keep nothing alive.

    Note [own reference first]: a forked child must not free what lies on a device, is pinned or is shared: the allocators
    behind them reach out of the process. Of each such storage the child takes a reference of its own, and "dead" then
    reads "only mine is left".
    """

    def __init__(self, references: Mapping[StorageId, StorageWeakRef], nbytes: Mapping[StorageId, int]) -> None:
        self._references = references
        self._nbytes = nbytes
        self._own: dict[StorageId, Any] = {}
        self._before: frozenset[StorageId] = frozenset()

    def guard(self) -> None:
        """Take the references that keep the child from freeing what it must not, and note what was dead before."""
        self._before = frozenset(self._dead())
        for storage, reference in self._references.items():
            held = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if held is not None and _reaches_out(held):
                self._own[storage] = held
            del held

    def since_guard(self) -> frozenset[StorageId]:
        """The storages that died since `guard`."""
        return frozenset(self._dead()) - self._before

    def weigh(self, storages: Iterable[StorageId]) -> int:
        """Their bytes."""
        return sum(self._nbytes.get(storage, 0) for storage in storages)

    def _dead(self) -> Iterable[StorageId]:
        for storage, reference in self._references.items():
            if storage in self._own:
                if only_mine(self._own, storage):
                    yield storage
            elif reference.expired():
                yield storage


def only_mine(own: Mapping[StorageId, Any], storage: StorageId) -> bool:
    """True where no tensor, no view and no Python reference but the one in `own` holds the storage."""
    return torch._C._storage_Use_Count(storage) == 1 and sys.getrefcount(own[storage]) == _OURS


def _reaches_out(storage: torch.UntypedStorage) -> bool:
    if storage.device.type != "cpu" or storage.is_shared():
        return True
    return _accelerator_in_use()  # any host memory may then be pinned, and asking would call the device


def _accelerator_in_use() -> bool:
    kind = torch._C._get_accelerator().type
    return kind != "cpu" and bool(getattr(getattr(torch, kind, None), "is_initialized", lambda: False)())

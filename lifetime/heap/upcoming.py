"""What the next step has begun with: the arguments of module calls that are running at the boundary.

A boundary that comes at the first forward of the next step finds that step's batch alive already. It has not outlived anything.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from lifetime.heap import peek
from lifetime.heap.frames import Running
from lifetime.heap.graph import History, StorageId, Watched

_MODULE_FILE = os.path.join("torch", "nn", "modules", "module.py")
_ARGUMENTS = frozenset({"args", "kwargs"})
_DEPTH = 4


def without(watched: Mapping[StorageId, Watched], history: History, stacks: Iterable[Running]) -> dict[StorageId, Watched]:
    """`watched` less what was first seen at this boundary and is an argument of a module call under way."""
    used = {storage for frame in stacks for storage in _arguments(frame)}
    return {key: one for key, one in watched.items() if key not in used or one.birth_step < history.last}


def _arguments(frame: Running) -> Iterator[StorageId]:
    if frame.thread is None and _MODULE_FILE in frame.where:
        for name, address in frame.slots:
            if name in _ARGUMENTS:
                yield from _storages(ctypes.cast(address, ctypes.py_object).value, _DEPTH)


def _storages(value: Any, depth: int) -> Iterator[StorageId]:
    if peek.is_tensor(value):
        try:
            yield StorageId(vars(torch._C.TensorBase)["untyped_storage"](value)._cdata)
        except (NotImplementedError, RuntimeError):
            return
    elif depth and (type(value) is tuple or type(value) is list):
        for item in value:
            yield from _storages(item, depth - 1)
    elif depth and type(value) is dict:
        for item in value.values():
            yield from _storages(item, depth - 1)

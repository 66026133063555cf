"""Storages that claim a size and have no memory: a tensor subclass's own shell, meta and fake tensors.

Note [not data_ptr()]: asking a storage for its `data_ptr()` copies one that is copied on write. So the word is read where it
lies in the C++ object, at an offset that is measured once on a storage of our own.
Source: c10/core/StorageImpl.h (`data_ptr_`, its first member).
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

import torch

WORD = ctypes.sizeof(ctypes.c_void_p)
_MOST_WORDS = 8
"""No more than a StorageImpl has."""


def is_shell(storage: torch.UntypedStorage) -> bool:
    """Whether the storage claims bytes that are nowhere."""
    offset = _offset()
    return offset is not None and storage.nbytes() > 0 and _word(storage, offset) == 0


def address(storage: int) -> int | None:
    """Where the data of the StorageImpl at `storage` lies, which a weak reference keeps in place; None where nobody knows."""
    offset = _offset()
    return (ctypes.c_void_p.from_address(storage + offset).value or None) if offset is not None else None


@lru_cache(maxsize=1)
def _offset() -> int | None:
    """Where a StorageImpl keeps the address of its data; None where it is not found."""
    probe = torch.UntypedStorage(WORD)
    found = [offset for offset in range(0, _MOST_WORDS * WORD, WORD) if _word(probe, offset) == probe.data_ptr()]
    return found[0] if found else None


def _word(storage: torch.UntypedStorage, offset: int) -> int:
    return ctypes.c_void_p.from_address(storage._cdata + offset).value or 0

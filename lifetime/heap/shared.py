"""Memory that a fork shares with its parent made private: what a finalizer writes there, or a lock it takes, stays in the child.

`multiprocessing.Value`, `Lock` and `Queue` live in such mappings; an audit hook sees no write to memory.
Source: proc(5), /proc/pid/maps; mmap(2), MAP_FIXED.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress

LARGEST = 16 << 20
"""Larger mappings are not copied but closed to writing: a finalizer that tries ends the child, and the attempt says so."""
_READ, _WRITE = 1, 2
_PRIVATE, _FIXED, _ANONYMOUS = 0x02, 0x10, 0x20


def make_private() -> None:
    """Give this process its own copy of every writable mapping that it shares (Linux; elsewhere nothing happens)."""
    with suppress(OSError):
        for start, length in list(_shared()):
            if length <= LARGEST:
                _replace(start, length)
            else:
                _libc().mprotect(ctypes.c_void_p(start), ctypes.c_size_t(length), _READ)


def _shared() -> Iterator[tuple[int, int]]:
    """(address, bytes) of the shared, writable memory: no device, whose registers are not to be copied."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            addresses, permissions, *rest = line.split(maxsplit=5)
            path = rest[3].strip() if len(rest) > 3 else ""
            is_memory = path.startswith(("/dev/shm/", "/dev/zero", "/memfd:")) or not path.startswith("/dev/")
            if permissions.startswith("rw") and permissions[3] == "s" and is_memory:
                start, end = (int(text, 16) for text in addresses.split("-"))
                yield start, end - start


def _replace(start: int, length: int) -> None:
    content = ctypes.string_at(start, length)
    mmap = _libc().mmap
    mmap.restype = ctypes.c_void_p
    flags = _PRIVATE | _FIXED | _ANONYMOUS
    if mmap(ctypes.c_void_p(start), ctypes.c_size_t(length), _READ | _WRITE, flags, -1, ctypes.c_long(0)) == start:
        ctypes.memmove(start, content, length)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)

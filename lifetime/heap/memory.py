"""This process's memory: its words, and which numbers are addresses of it, as what `id()` gives is.

Words are read as a file: a wild pointer is an error then and no crash.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import suppress
from functools import lru_cache

WORD = 8
LEAST = 1 << 32
"""Smaller numbers are taken for numbers: no allocator hands out memory that low."""


def is_mapped(number: int) -> bool:
    """Whether the number is an address of this process (Linux; elsewhere no number is)."""
    if number < LEAST:
        return False
    starts, ends = _mappings()
    place = bisect_right(starts, number) - 1
    return place >= 0 and number < ends[place]


def forget() -> None:
    """What was mapped may not be any more, or not alone."""
    _mappings.cache_clear()


@lru_cache(maxsize=1)
def _mappings() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The beginnings and the ends of what is mapped, in order. Read once a look: a child asks of what its parent had."""
    ranges = []
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        ranges = [tuple(int(part, 16) for part in line.split(maxsplit=1)[0].split("-")) for line in maps]
    return tuple(start for start, _ in ranges), tuple(end for _, end in ranges)


class Memory:
    """Open until `end`; on Linux, elsewhere it has no words."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open("/proc/self/mem", os.O_RDONLY)
        except OSError:
            self._descriptor = -1

    def words(self, address: int, length: int) -> tuple[int, ...]:
        """The words at `address`, none where it is not mapped."""
        if self._descriptor < 0 or address <= 0 or address % WORD:
            return ()
        try:
            return tuple(memoryview(os.pread(self._descriptor, length, address)).cast("Q"))
        except (OSError, OverflowError, TypeError):  # not mapped, no address, cut short
            return ()

    def end(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

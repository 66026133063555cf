"""Which addresses belong to this process: what tells an `id()` from a number that a program counts with."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from functools import lru_cache

LEAST = 1 << 32
"""Smaller numbers are taken for numbers: no allocator hands out memory that low."""


def is_mapped(number: int) -> bool:
    """Whether the number is an address of this process (Linux; elsewhere no number is)."""
    if number < LEAST:
        return False
    starts, ends = _mappings()
    place = bisect_right(starts, number) - 1
    return place >= 0 and number < ends[place]


@lru_cache(maxsize=1)
def _mappings() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The beginnings and the ends of what is mapped, in order. Read once: a child asks of what its parent had."""
    ranges = []
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        ranges = [tuple(int(part, 16) for part in line.split(maxsplit=1)[0].split("-")) for line in maps]
    return tuple(start for start, _ in ranges), tuple(end for _, end in ranges)

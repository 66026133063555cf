"""Numbers as people read them."""

from __future__ import annotations

_STEPS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def bytes_text(count: int, digits: int = 1) -> str:
    """`count` bytes in binary units, with `digits` decimals.

    >>> bytes_text(2624), bytes_text(64 << 20), bytes_text(7)
    ('2.6 KiB', '64.0 MiB', '7 B')
    """
    sign = "-" if count < 0 else ""
    for unit, size in _STEPS:
        if abs(count) >= size:
            return f"{sign}{abs(count) / size:.{digits}f} {unit}"
    return f"{count} B"


def plural(count: int, noun: str) -> str:
    """`count` and its noun, with an s unless there is one.

    >>> plural(1, "leak"), plural(3, "leak")
    ('1 leak', '3 leaks')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

"""Out of memory: which errors mean it."""

from __future__ import annotations

import sys

_CPU_WORDS = ("can't allocate memory", "not enough memory", "Cannot allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """torch's own error on a device, the CPU allocator's RuntimeError, or Python's MemoryError; also as the cause of another."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if _is_one(error):
            return True
        following = error.__cause__ or error.__context__
        if following is None:
            return False
        error = following
    return False


def _is_one(error: BaseException) -> bool:
    device_error = getattr(sys.modules.get("torch"), "OutOfMemoryError", ())
    if isinstance(error, (MemoryError, device_error)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU_WORDS)

"""What the allocator itself says is in use: a figure that does not come from our own count of tensors.

Source: mallinfo2(3), glibc 2.33 (`uordblks` are the bytes in use on the heap, `hblkhd` those in mapped blocks). Good within a
page a tensor for tensors of 64 KiB and up; below that tensors come out of the heap's own slack.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import torch

_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def allocated_bytes() -> int | None:
    """Bytes in use: of the caching allocator where CUDA is in use, else of glibc's; None where neither can be asked."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.memory_allocated()
    ask = _glibc()
    if ask is None:
        return None
    info = ask()
    return int(info.uordblks + info.hblkhd)


def peak_bytes() -> int:
    """The largest that the caching allocator held, or on a CPU the largest resident set of the process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.max_memory_allocated()
    import resource  # absent on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@cache
def _glibc() -> Any:
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return None
    function.restype = _Mallinfo2
    return function

"""The allocator and the device as the tracer sees them: one small seam, CPU and CUDA behind it."""

from __future__ import annotations

import torch

from lifetime.heap.model import Step
from lifetime.tracer import graphpool


def name() -> str:
    """`cpu`, or what CUDA calls the current device."""
    return torch.cuda.get_device_name() if _cuda() else "cpu"


def measured(index: int, live_bytes: int) -> Step:
    """The boundary `index` with the caching allocator's figures, where there is one; the peak is the step's own."""
    if not _cuda():
        return Step(index, live_bytes)
    step = Step(index, live_bytes, torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated())
    if not capturing():
        torch.cuda.reset_peak_memory_stats()
    return step


def capturing() -> bool:
    """A CUDA graph is being captured on the current stream."""
    return _cuda() and torch.cuda.is_current_stream_capturing()


def pool_of(address: int) -> graphpool.Pool | None:
    """The CUDA graph's pool in which the block at `address` lies."""
    return graphpool.pool_of(torch.cuda.memory_snapshot(), address) if _cuda() else None


def _cuda() -> bool:
    # Asking more than this would create a context that the program did not ask for.
    return torch.cuda.is_available() and torch.cuda.is_initialized()

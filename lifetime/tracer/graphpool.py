"""Whose memory pool a block lies in, read from the documented structure of `torch.cuda.memory_snapshot()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Pool = tuple[int, int]
NO_POOL: Pool = (0, 0)
"""The caching allocator's own pool: not a CUDA graph's."""


def pool_of(snapshot: Iterable[Mapping[str, Any]], address: int) -> Pool | None:
    """The private pool (`segment_pool_id`) of the block at `address`, None if it is in none or the snapshot does not say."""
    for segment in snapshot:
        start, size = segment["address"], segment["total_size"]
        if start <= address < start + size:
            pool = tuple(segment.get("segment_pool_id", NO_POOL))
            return None if pool == NO_POOL else (pool[0], pool[1])
    return None


def sentence(pool: Pool) -> str:
    """What a captured harvest means for the gradients it returns."""
    return (
        f"ran under CUDA-graph capture: the gradients lie in the graph's pool {pool}; once the leaves are released the returned "
        "tuple is their last owner, and later work of the capture may be given their blocks"
    )

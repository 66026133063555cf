"""Survivors joined with a memory snapshot: the holder says why a tensor lives, the allocation's stack where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from lifetime.errors import ReportError
from lifetime.heap.model import Gap, Report, Survivor, TensorFacts
from lifetime.report.memory_snapshot import Allocations, Block

NO_ADDRESS = "the report has no address of it"
NOT_THERE = "no live block lies at its address: freed before the snapshot, not on a device, or the snapshot is of another run"
REUSED = "another allocation lies at its address: it was freed, and its memory given out anew, before the snapshot"
NO_STACK = "no stack was recorded with it: call torch.cuda.memory._record_memory_history() before the first step"


def joined(report: Report, allocations: Allocations) -> Report:
    """The report with the stack of the allocation beside each survivor's tensor, and a gap for those that have none.

    Raises:
        ReportError: the report was made without addresses.
    """
    if report.survivors and all(survivor.tensor.address is None for survivor in report.survivors):
        raise ReportError("the report has no addresses to look up in a memory snapshot", "trace again with --addresses")
    survivors, missing = [], Counter[str]()
    for survivor in report.survivors:
        found = _block(survivor.tensor, allocations)
        if isinstance(found, str):
            missing[found] += 1
        survivors.append(survivor if isinstance(found, str) else _told(survivor, found))
    gaps = (*report.gaps, *_gaps(missing, len(report.survivors)))
    return replace(report, survivors=tuple(survivors), gaps=gaps)


def _block(tensor: TensorFacts, allocations: Allocations) -> Block | str:
    """The allocation that is the tensor's storage, or why it has none."""
    if tensor.address is None:
        return NO_ADDRESS
    block = allocations.at(tensor.address)
    if block is None:
        return NOT_THERE
    if not block.holds(tensor.address, tensor.storage_bytes):
        return REUSED
    return block if block.frames else NO_STACK


def _told(survivor: Survivor, block: Block) -> Survivor:
    tensor = survivor.tensor
    return replace(survivor, tensor=replace(tensor, stack=block.stack, created_at=tensor.created_at or block.made_at))


def _gaps(missing: Counter[str], total: int) -> Iterator[Gap]:
    for why, count in sorted(missing.items()):
        yield Gap(f"memory snapshot, {count} of {total} survivors", why)

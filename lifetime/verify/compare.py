"""Runs in, verdict out: are the gradients the same, and what did the fix buy?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from lifetime.verify.model import ArmRun, ArmStep, Conclusion, Loss, Metric

ALLOCATOR_NOISE_BYTES = 4096
"""glibc's figure moves by up to a page a tensor (measured: 1 MiB moved it by 4 096 bytes more)."""


def first_difference(left: ArmRun, right: ArmRun) -> tuple[int, str] | None:
    """Step and parameter of the first gradient that differs; the parameter is empty where one run has fewer steps."""
    for index, (mine, other) in enumerate(zip(left.steps, right.steps, strict=False)):
        mine_of, other_of = ({d.name: d.value for d in step.gradients} for step in (mine, other))
        for name in dict.fromkeys([*mine_of, *other_of]):
            if mine_of.get(name) != other_of.get(name):
                return index, name
    if len(left.steps) != len(right.steps):
        return min(len(left.steps), len(right.steps)), ""
    return None


def unstable(runs: Sequence[ArmRun]) -> tuple[int, str] | None:
    """The first difference between repetitions of the same arm: then nothing can be said about the other one."""
    for run in runs[1:]:
        found = first_difference(runs[0], run)
        if found:
            return found
        if run.parameters != runs[0].parameters:
            changed = [a.name for a, b in zip(runs[0].parameters, run.parameters, strict=False) if a != b]
            return len(run.steps), changed[0] if changed else ""
    return None


def losses(before: ArmRun, after: ArmRun) -> tuple[Loss, ...]:
    def at(run: ArmRun, index: int) -> float | None:
        return run.steps[index].loss if index < len(run.steps) else None

    return tuple(Loss(k, at(before, k), at(after, k)) for k in range(max(len(before.steps), len(after.steps))))


def metrics(before: Sequence[ArmRun], after: Sequence[ArmRun]) -> tuple[Metric, ...]:
    """Every figure that both arms have, before and after."""
    return tuple(_metrics(before, after))


def _metrics(before: Sequence[ArmRun], after: Sequence[ArmRun]) -> Iterator[Metric]:
    for name, unit, read in FIGURES:
        left, right = ([value for run in runs if (value := read(run)) is not None] for runs in (before, after))
        if left and right:
            yield Metric(name, unit, median(left), median(right), max(left) - min(left), max(right) - min(right))


def _last(read: Callable[[ArmStep], int | None]) -> Callable[[ArmRun], float | None]:
    """The figure at the last boundary that has it: a held tensor a step has piled up by then, a replaced one is there once."""

    def last(run: ArmRun) -> float | None:
        return next((value for step in reversed(run.steps) if (value := read(step)) is not None), None)

    return last


def _typical(read: Callable[[ArmStep], float]) -> Callable[[ArmRun], float | None]:
    """The median over the steps after the first, which pays for what is set up once."""

    def typical(run: ArmRun) -> float | None:
        values = [read(step) for step in run.steps[1:] or run.steps]
        return median(values) if values else None

    return typical


FIGURES: tuple[tuple[str, str, Callable[[ArmRun], float | None]], ...] = (
    ("floor_bytes", "bytes", _last(lambda step: step.floor_bytes)),
    ("peak_bytes", "bytes", lambda run: run.peak_bytes),
    ("live_bytes", "bytes", _last(lambda step: step.live_bytes)),
    ("step_seconds", "s", _typical(lambda step: step.seconds)),
    ("gradient_copies", "a step", _typical(lambda step: step.copied)),
)


def conclude(identical: bool, stale: Sequence[str], table: Sequence[Metric]) -> Conclusion:
    """What a fix that was measured comes to; `stale` are the places where LT011 says that the old numbers were wrong."""
    if not identical:
        return Conclusion.CORRECTED if stale else Conclusion.CHANGED
    return Conclusion.LOWER if any(_is_lower(metric) for metric in table) else Conclusion.NO_GAIN


def _is_lower(metric: Metric) -> bool:
    saved = metric.before - metric.after
    noise = max(metric.spread_before, metric.spread_after)
    match metric.name:
        case "floor_bytes":
            return saved > noise + ALLOCATOR_NOISE_BYTES
        case "live_bytes" | "gradient_copies":
            return saved > noise
    return False

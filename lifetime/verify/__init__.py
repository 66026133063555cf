"""A/B: the same program with and without the fix, in separate processes, interleaved, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lifetime.errors import LifetimeError
from lifetime.verify import arms, compare, scale
from lifetime.verify.arms import Order
from lifetime.verify.model import ArmRun, Conclusion, Difference, Gradients, Parameters, Verification

Progress = Callable[[str], None]


def verify(order: Order, *, repetitions: int, sizes: scale.Scale | None, progress: Progress) -> Verification:
    """What the fixes of `order` do to the program; with `sizes`, also how the saving grows.

    Raises:
        LifetimeError: nothing to fix, or a run fails.
    """
    if sizes is None:
        return _measure(order, repetitions, progress)
    measured = []
    for value in sizes.values:
        progress(f"{sizes.key} = {value:g}")
        measured.append(_measure(_sized(order, sizes, value), repetitions, progress))
    odd = next((m for m in measured if m.conclusion in (Conclusion.NOT_DETERMINISTIC, Conclusion.CHANGED)), None)
    if odd is not None:
        return odd
    return replace(measured[-1], extrapolation=scale.extrapolate(sizes, [m.metrics for m in measured]))


def _sized(order: Order, sizes: scale.Scale, value: float) -> Order:
    start = 2 if order.program[0] == "-m" else 1
    return replace(order, program=(*order.program[:start], *sizes.arguments(order.program[start:], value)))


def _measure(order: Order, repetitions: int, progress: Progress) -> Verification:
    before, after = _runs(order, repetitions, progress)
    loose = compare.unstable(before) or compare.unstable(after)
    different = compare.first_difference(before[0], after[0])
    same = different is None and before[0].parameters == after[0].parameters
    table = compare.metrics(before, after)
    stale = after[0].stale if not same else ()
    conclusion = Conclusion.NOT_DETERMINISTIC if loose else compare.conclude(same, stale, table)
    return Verification(
        environment=before[0].environment,
        fixes=after[0].fixes,
        repetitions=repetitions,
        gradients=Gradients(different is None and loose is None, _difference(order, loose or different, bool(loose))),
        parameters=Parameters(before[0].parameters == after[0].parameters),
        losses=compare.losses(before[0], after[0]),
        metrics=table,
        conclusion=conclusion,
        reasons=tuple(f"LT011 at {place}: a held gradient is accumulated into by a later backward" for place in stale),
    )


def _runs(order: Order, repetitions: int, progress: Progress) -> tuple[list[ArmRun], list[ArmRun]]:
    before: list[ArmRun] = []
    after: list[ArmRun] = []
    for number in range(repetitions):
        for runs, apply in ((before, False), (after, True)):
            progress(f"run {2 * number + apply + 1} of {2 * repetitions}, {'with' if apply else 'without'} the fix")
            runs.append(arms.run(order, apply=apply).run)
            if not runs[0].fixes:
                raise LifetimeError(
                    _nothing(order), "lifetime lint shows which rules have a fix here: name them, as in --select LT009,LT004"
                )
            if not runs[0].steps:
                raise LifetimeError("no step was seen: its optimizer never steps, or without one it never runs a backward pass")
    return before, after


def _nothing(order: Order) -> str:
    where = f" at {', '.join(order.sites)}" if order.sites else ""
    return f"nothing to fix: no finding of {', '.join(order.select)} with a fix{where} in what the program imports"


def _difference(order: Order, found: tuple[int, str] | None, loose: bool) -> Difference | None:
    """How far apart the first differing gradient is, from one more run of each arm that brings its values."""
    if found is None:
        return None
    if not found[1]:
        return Difference(found[0], "", None)
    left = arms.run(order, apply=False, wanted=found).values
    right = arms.run(order, apply=not loose, wanted=found).values
    if left is None or right is None or len(left) != len(right):
        return Difference(*found, None)
    return Difference(*found, max((abs(a - b) for a, b in zip(left, right, strict=True)), default=0.0))

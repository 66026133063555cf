"""The comparison of two arms: which difference is first, what counts as lower, what a fit says beyond the measured range."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifetime.errors import UsageError
from lifetime.heap.model import Environment, GcState
from lifetime.verify import compare, scale
from lifetime.verify.model import ArmRun, ArmStep, Conclusion, Digest, Extrapolation, Loss, Metric

HERE = Environment("3.11", "2.13", "cpu", GcState(True, "as-is"), 0, 1, ("train.py",))


def step(gradient: str = "aa", *, loss: float = 1.0, floor: int | None = 1000, copied: int = 0) -> ArmStep:
    return ArmStep((Digest("w", gradient), Digest("b", "bb")), loss, 0.5, copied, 1, floor, 500)


def run(*steps: ArmStep) -> ArmRun:
    return ArmRun(HERE, steps, (Digest("w", "end"),), 10_000)


def test_the_first_difference_is_the_earliest_step_and_its_first_parameter() -> None:
    assert compare.first_difference(run(step(), step()), run(step(), step())) is None
    assert compare.first_difference(run(step(), step("xx")), run(step(), step("yy"))) == (1, "w")


def test_a_parameter_that_only_one_arm_has_a_gradient_for_is_a_difference() -> None:
    fewer = replace(step(), gradients=(Digest("w", "aa"),))
    assert compare.first_difference(run(step()), run(fewer)) == (0, "b")


def test_a_run_with_fewer_steps_differs_where_it_ends() -> None:
    assert compare.first_difference(run(step()), run(step(), step())) == (1, "")


def test_repetitions_that_differ_only_in_the_end_are_unstable_too() -> None:
    assert compare.unstable([run(step()), run(step())]) is None
    assert compare.unstable([run(step()), run(step("zz"))]) == (0, "w")
    assert compare.unstable([run(step()), replace(run(step()), parameters=(Digest("w", "other"),))]) == (1, "w")


def test_losses_of_a_shorter_run_are_none() -> None:
    assert compare.losses(run(step(loss=1.5)), run(step(loss=1.5), step(loss=2.5))) == (Loss(0, 1.5, 1.5), Loss(1, None, 2.5))


def test_metrics_are_medians_at_the_last_boundary_with_their_spread() -> None:
    before = [run(step(), step(floor=9000), step(floor=None)), run(step(), step(floor=9200), step(floor=None))]
    after = [run(step(), step(floor=1000)), run(step(), step(floor=1000))]
    table = {metric.name: metric for metric in compare.metrics(before, after)}
    assert table["floor_bytes"] == Metric("floor_bytes", "bytes", 9100, 1000, 200, 0)
    assert table["gradient_copies"] == Metric("gradient_copies", "a step", 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [(0, Conclusion.NO_GAIN), (4096, Conclusion.NO_GAIN), (8192, Conclusion.LOWER), (-8192, Conclusion.NO_GAIN)],
)
def test_lower_means_beyond_the_allocator_noise(saved: int, expected: Conclusion) -> None:
    table = [Metric("floor_bytes", "bytes", 100_000, 100_000 - saved, 0, 0), Metric("step_seconds", "s", 2.0, 1.0, 0, 0)]
    assert compare.conclude(True, (), table) is expected


def test_one_copy_fewer_is_lower_and_a_spread_hides_what_is_within_it() -> None:
    assert compare.conclude(True, (), [Metric("gradient_copies", "a step", 2, 1, 0, 0)]) is Conclusion.LOWER
    assert compare.conclude(True, (), [Metric("live_bytes", "bytes", 200, 100, 150, 0)]) is Conclusion.NO_GAIN


def test_other_numbers_are_a_correction_only_where_a_rule_says_why() -> None:
    assert compare.conclude(False, ("f.py:3",), ()) is Conclusion.CORRECTED
    assert compare.conclude(False, (), ()) is Conclusion.CHANGED


def test_a_line_through_points_on_a_line_has_no_residual() -> None:
    assert scale.line([(1, 3), (2, 5), (4, 9)]) == (2.0, 1.0, 0.0)
    slope, intercept, residual = scale.line([(0, 0), (1, 2), (2, 0)])
    assert slope == 0.0 and residual == pytest.approx(4 / 3) and intercept == pytest.approx(2 / 3)


def test_extrapolation_speaks_of_multiples_of_the_largest_size() -> None:
    tables = [[Metric("floor_bytes", "bytes", 1000 + saved, 1000, 0, 0)] for saved in (100, 200)]
    assert scale.extrapolate(scale.parse("--seq=20,10"), tables) == (
        Extrapolation("floor_bytes saved at --seq=40", 400.0, 0.0),
        Extrapolation("floor_bytes saved at --seq=200", 2000.0, 0.0),
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--seq", "1", "x"], ["--seq", "8", "x"]),
        (["--seq=1"], ["--seq=8"]),
        (["x"], ["x", "--seq", "8"]),
    ],
)
def test_the_key_is_replaced_where_it_stands_and_appended_where_not(given: list[str], expected: list[str]) -> None:
    assert scale.parse("seq=8,9").arguments(given, 8.0) == expected


@pytest.mark.parametrize("text", ["seq", "seq=1", "=1,2", "seq=a,b", "seq=2,2"])
def test_a_scale_needs_a_key_and_two_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="KEY=V1,V2"):
        scale.parse(text)

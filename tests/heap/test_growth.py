"""Births alone: the programs that fooled simpler rules, each as the births of the storages that are alive at the end."""

from __future__ import annotations

import pytest

from lifetime.heap.graph import Death, History
from lifetime.heap.growth import grows, turns_over


@pytest.mark.parametrize(
    ("what", "births", "last", "expected"),
    [
        ("appended in every step", [1, 2, 3, 4, 5, 6], 6, True),
        ("appended in every second step, even", [2, 4, 6], 6, True),
        ("appended in every second step, odd", [1, 3, 5], 6, True),
        ("appended in every step, the newest has another holder too", [1, 2, 3, 4, 5], 6, True),
        ("begins in the middle of the run", [3, 4, 5, 6], 6, True),
        ("four boundaries are enough", [1, 2, 3], 3, True),
        ("three are not", [0, 1, 2], 2, False),
        ("a cache that fills for four steps", [0, 1, 2, 3], 6, False),
        ("a cache that fills for four steps after warm-up", [1, 2, 3, 4], 6, False),
        ("deque(maxlen=3)", [4, 5, 6], 6, False),
        ("two places, replaced in turn", [5, 6], 6, False),
        ("replaced in every step", [6], 6, False),
        ("made once in warm-up", [0], 6, False),
        ("made in each warm-up step", [-2, -1, 0], 6, False),
        ("three caches filled at the beginning", [1, 2, 3], 6, False),
        ("now and then over a long run", [3, 9, 15, 20], 20, False),
    ],
)
def test_births(what: str, births: list[int], last: int, expected: bool) -> None:
    assert grows(births, History(1, last)) is expected, what


def test_a_buffer_that_turns_over_is_told_by_what_died_at_the_age_of_its_capacity() -> None:
    deaths = (Death(1, 4, 64), Death(2, 5, 64))
    assert turns_over([3, 4, 5, 6], {64}, deaths)
    assert not turns_over([3, 4, 5, 6], {64}, ()), "nothing died: perhaps a leak that began late"
    assert not turns_over([3, 4, 5, 6], {640}, deaths), "what died was something else"
    assert not turns_over([1, 2, 3, 4, 5, 6], {64}, (Death(1, 2, 64),)), "it died sooner than a buffer of six lets go"
    assert not turns_over([2, 4, 6], {64}, deaths)

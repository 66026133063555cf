"""Growing or not: what the births of the storages that are alive say about a holder.

Note [why births]: totals hide a leak behind a cache that shrinks, shapes hide one that changes size every step. What is asked
here is asked of the storages of one holder: from which steps do they come?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lifetime.heap.graph import Death, History

FEWEST_BOUNDARIES = 4
FEWEST_BIRTHS = 3


def births_of(mask: int) -> list[int]:
    """The steps whose bits are set."""
    return [step for step in range(mask.bit_length()) if mask >> step & 1]


def grows(births: Collection[int], history: History) -> bool:
    """Whether storages born in these steps, all alive now, are more each step, for ever.

    Births in at least three steps after warm-up and in half of them, in both halves of the run, and not over: a cache that
    filled and stopped is silent for longer at the end than it ever was before.
    """
    seen = sorted({b for b in births if history.first <= b <= history.last})
    steps = history.last - history.first + 1
    if history.last + 1 < FEWEST_BOUNDARIES or len(seen) < FEWEST_BIRTHS or 2 * len(seen) < steps:
        return False
    middle = history.first + steps // 2
    if not seen[0] < middle <= seen[-1]:
        return False
    pauses = [later - earlier for earlier, later in zip(seen, seen[1:], strict=False)]
    return history.last - seen[-1] <= max(pauses)


def turns_over(births: Collection[int], sizes: Collection[int], deaths: Iterable[Death]) -> bool:
    """Whether these are the last k steps of a buffer of k places: earlier storages of the same size died when k steps old."""
    seen = sorted(set(births))
    places = len(seen)
    if seen[-1] - seen[0] + 1 != places:
        return False
    return any(
        d.nbytes in sizes and d.birth_step < seen[0] and d.last_step - d.birth_step + 1 == places and not d.collected
        for d in deaths
    )

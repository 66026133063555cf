"""Equal stretches of a chain folded into one with a count: forty-eight layers, or a linked list, read as one. So do equal gaps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lifetime.heap.model import Chain, Gap, Link, Survivor

LONGEST_PERIOD = 24
ENDS = 14
_DIGITS = re.compile(r"\d+")
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Stretch:
    """The links of one repetition, by index, and how often they follow each other. `left_out` links are not shown at all."""

    links: tuple[int, ...]
    times: int = 1
    left_out: int = 0


AGAIN = "the first holder again"
"""How the reason of a link begins whose holder is the chain's first once more: the cycle closes there, the tensor hangs below."""


def ring(chain: Chain) -> tuple[int, int] | None:
    """The link whose holder is that of an earlier link, and that link; the number of links stands for the tensor itself."""
    if chain.cycle is not None and chain.cycle >= 0:
        return (len(chain.links), chain.cycle) if chain.links else None
    again = next((k for k, link in enumerate(chain.links) if k and link.reason.startswith(AGAIN)), None)
    return (again, 0) if again is not None else None


def stretches(survivor: Survivor, ends: int = ENDS) -> tuple[Stretch, ...]:
    """The chain in stretches, at most `ends` of them at either end; the cut and the links that a cycle closes on always stand
    alone, and are never left out."""
    kept = {survivor.cut.link, *(ring(survivor.chain) or ())}
    return _bounded(tuple(_folded(survivor.chain, kept)), kept, ends)


def _folded(chain: Chain, alone: set[int]) -> Iterator[Stretch]:
    keys: list[Key | int] = [k if k in alone else _key(link) for k, link in enumerate(chain.links)]
    at = 0
    while at < len(keys):
        period, times = _run(keys, at)
        yield Stretch(tuple(range(at, at + period)), times)
        at += period * times


def _key(link: Link) -> Key:
    return (_blur(link.holder), _blur(link.holder_type), _blur(link.reference), link.kind)


def _blur(text: str) -> str:
    return _DIGITS.sub("#", text)


def _run(keys: Sequence[Key | int], at: int) -> tuple[int, int]:
    """The period and count of the repetition at `at` that covers most links; (1, 1) where nothing repeats."""
    best = (1, 1)
    for period in range(1, min(LONGEST_PERIOD, (len(keys) - at) // 2) + 1):
        times = _repeats(keys, at, period)
        if times > 1 and period * times > max(best[0] * best[1], 2):
            best = (period, times)
    return best


def _repeats(keys: Sequence[Key | int], at: int, period: int) -> int:
    times = 1
    first = keys[at : at + period]
    while keys[at + times * period : at + (times + 1) * period] == first:
        times += 1
    return times


def _bounded(folded: tuple[Stretch, ...], kept: set[int], ends: int) -> tuple[Stretch, ...]:
    """Both ends of a chain that stays long after folding, and its marked links; the rest is a count."""
    if len(folded) <= 2 * ends:
        return folded
    result: list[Stretch] = list(folded[:ends])
    skipped = 0
    for stretch in folded[ends:-ends]:
        if kept.intersection(stretch.links):
            result += _count(skipped) + [stretch]
            skipped = 0
        else:
            skipped += len(stretch.links) * stretch.times
    return (*result, *_count(skipped), *folded[-ends:])


def _count(skipped: int) -> list[Stretch]:
    return [Stretch((), 1, skipped)] if skipped else []


def gaps_alike(gaps: Iterable[Gap]) -> list[Gap]:
    """Gaps in order; those that have one reason are one.

    >>> [gap.where for gap in gaps_alike([Gap("a.py", "locked"), Gap("b.py", "locked"), Gap("c.py", "torn")])]
    ['a.py and 1 more', 'c.py']
    """
    places: dict[str, list[str]] = {}
    for gap in gaps:
        places.setdefault(gap.why, []).append(gap.where)
    return [Gap(found[0] + (f" and {len(found) - 1} more" if len(found) > 1 else ""), why) for why, found in places.items()]

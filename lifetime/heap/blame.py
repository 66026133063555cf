"""Which reference is to blame for which storages: one leak, however many storages and layers hang below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lifetime.heap.accumulate import Accumulation, accumulations
from lifetime.heap.chosen import Chosen, is_place
from lifetime.heap.fingerprint import Shape
from lifetime.heap.graph import History
from lifetime.heap.growth import turns_over
from lifetime.heap.model import Leaking, Verdict

FAR_FROM_FULL = 4
"""A buffer with room for so many times what it was seen to hold cannot be called harmless: it may never be full in memory."""


@dataclass
class Blame:
    """`references` are the nodes that the blamed references lead to; `behind` the storages held through them, `beside` storages
    that hang on the same holder another way and are told with them."""

    verdict: Verdict
    shape: Shape
    references: dict[int, None] = field(default_factory=dict)
    behind: list[int] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)

    @property
    def storages(self) -> list[int]:
        return self.behind + self.beside


def growing(chosen: Chosen, born: Mapping[int, int], sizes: Mapping[int, int], history: History) -> tuple[list[Blame], list[int]]:
    """The leaks that grow among storages that a root reaches, and the storages that are in none of them. What fills a buffer that
    has room for far more than was seen is told as lingering: it will end, if late.

    `born` and `sizes`: step of birth and bytes of each storage.
    """
    births: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for storage, step in born.items():
        anchor = chosen.anchor[storage]
        births[anchor] = births.get(anchor, 0) | 1 << step
        below.setdefault(anchor, []).append(storage)
    leaks: dict[Shape, Blame] = {}
    for one in accumulations(chosen, births, history):
        storages = [s for anchor in one.anchors for s in below[anchor]]
        verdict = _verdict(chosen, one, {born[s] for s in storages}, {sizes[s] for s in storages}, history)
        if verdict is not None:
            leak = leaks.setdefault(one.shape, Blame(verdict, one.shape))
            leak.references.update(dict.fromkeys(one.references))
    rest = _shared_out(chosen, list(leaks.values()), born)
    return [leak for leak in leaks.values() if leak.behind], rest


def _verdict(chosen: Chosen, one: Accumulation, births: set[int], sizes: set[int], history: History) -> Verdict | None:
    """None where the holder can hold so many and no more, by its own limit or by what it was seen to let go."""
    if one.holder is not None and chosen.is_limited(one.holder):
        bound = chosen.node(one.holder).bound
        return Verdict.LINGERING if bound is not None and bound >= FAR_FROM_FULL * len(one.references) else None
    return None if turns_over(births, sizes, history.deaths) else Verdict.GROWING


def _shared_out(chosen: Chosen, leaks: Sequence[Blame], storages: Iterable[int]) -> list[int]:
    """Give each storage to the outermost leak on its path, or return it. What hangs on the same holder is told with the leak."""
    through = {node: leak for leak in leaks for node in leak.references}
    holders = {chosen.above(node): leak for leak in leaks for node in leak.references if _is_own(chosen, chosen.above(node))}
    behind: dict[int, Blame | None] = {}
    beside: dict[int, Blame | None] = {}
    for node in chosen.order:
        above = chosen.above(node)
        if above is None or chosen.lives_by_itself(node):
            behind[node], beside[node] = through.get(node), holders.get(node)
            continue
        outer = behind[above]
        if outer is not None:
            through.get(node, outer).references.pop(node, None)
        behind[node] = outer or through.get(node)
        beside[node] = beside[above] or holders.get(node)
    rest = []
    for storage in storages:
        if (leak := behind[storage]) is not None:
            leak.behind.append(storage)
        elif (leak := beside[storage]) is not None:
            leak.beside.append(storage)
        else:
            rest.append(storage)
    return rest


def _is_own(chosen: Chosen, holder: int | None) -> bool:
    """Whether a holder exists for what it holds: not a place, and not an object that is alive on purpose."""
    return holder is not None and not is_place(chosen.node(holder)) and chosen.status[holder][0] is not Leaking.NO

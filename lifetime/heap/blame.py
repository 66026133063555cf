"""Which reference is to blame for which storages: one leak, however many storages and layers hang below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lifetime.heap.accumulate import Accumulation, accumulations
from lifetime.heap.chosen import Chosen, is_place
from lifetime.heap.dominators import Retained
from lifetime.heap.fingerprint import Shape
from lifetime.heap.graph import EdgeKind, History
from lifetime.heap.growth import turns_over
from lifetime.heap.model import Leaking, RootKind, Verdict
from lifetime.heap.references import Token, is_cuttable

LOCALS: Token = ("frame", EdgeKind.LOCAL.value, "<its own variables>")


@dataclass
class Blame:
    """`references` are the nodes that the blamed references lead to; `behind` the storages held through them, `beside` storages
    that hang on the same holder another way and are told with them."""

    verdict: Verdict
    shape: Shape
    references: list[int]
    behind: list[int] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)

    @property
    def storages(self) -> list[int]:
        return self.behind + self.beside


def blame(chosen: Chosen, born: Mapping[int, int], sizes: Mapping[int, int], history: History, retained: Retained) -> list[Blame]:
    """The leaks among storages that a root reaches. `born` and `sizes`: step of birth and bytes of each storage."""
    births: dict[int, int] = {}
    for storage, step in born.items():
        anchor = chosen.anchor[storage]
        births[anchor] = births.get(anchor, 0) | 1 << step
    growing = _growing(chosen, accumulations(chosen, births, history), born, sizes, history)
    rest = _assign(chosen, growing, born)
    growing = [leak for leak in growing if leak.behind]
    lingering = _lingering(chosen, rest, born, history, retained)
    return [*_with_outer(chosen, growing, lingering)]


def _growing(
    chosen: Chosen, found: Iterable[Accumulation], born: Mapping[int, int], sizes: Mapping[int, int], history: History
) -> list[Blame]:
    by_shape: dict[Shape, Blame] = {}
    below: dict[int, list[int]] = {}
    for storage in born:
        below.setdefault(chosen.anchor[storage], []).append(storage)
    for one in found:
        storages = [s for anchor in one.anchors for s in below[anchor]]
        steps = [born[s] for s in storages]
        bounded = one.holder is not None and chosen.node(one.holder).bound is not None
        if bounded or turns_over(steps, {sizes[s] for s in storages}, history.deaths):
            continue
        shape = chosen.shape[one.references[0]]
        entry = by_shape.setdefault(shape, Blame(Verdict.GROWING, shape, []))
        entry.references.extend(node for node in one.references if node not in set(entry.references))
    return list(by_shape.values())


def _assign(chosen: Chosen, leaks: Sequence[Blame], born: Mapping[int, int]) -> list[int]:
    """Give each storage to the outermost leak on its path, or leave it. What hangs on the same holder is told with the leak."""
    through = {node: leak for leak in leaks for node in leak.references}
    holders = {chosen.above(node): leak for leak in leaks for node in leak.references if _is_own(chosen, chosen.above(node))}
    where: dict[int, tuple[Blame, bool] | None] = {}
    for node in chosen.order:
        above = chosen.above(node)
        given = where[above] if above is not None else None
        if given is None or not given[1]:
            if node in through:
                given = (through[node], True)
            elif given is None and node in holders:
                given = (holders[node], False)
        where[node] = given
    for leak in leaks:
        leak.references = [node for node in leak.references if not _is_inside(where, chosen.above(node))]
    rest = []
    for storage in born:
        given = where[storage]
        if given is None:
            rest.append(storage)
        else:
            (given[0].behind if given[1] else given[0].beside).append(storage)
    return rest


def _is_inside(where: Mapping[int, tuple[Blame, bool] | None], holder: int | None) -> bool:
    """Whether the holder itself hangs below a blamed reference."""
    given = where[holder] if holder is not None else None
    return given is not None and given[1]


def _is_own(chosen: Chosen, holder: int | None) -> bool:
    """Whether a holder exists for what it holds: not a place, and not an object that is alive on purpose."""
    return holder is not None and not is_place(chosen.node(holder)) and chosen.status[holder][0] is not Leaking.NO


def _lingering(chosen: Chosen, rest: Iterable[int], born: Mapping[int, int], history: History, retained: Retained) -> list[Blame]:
    """Leaks of what is replaced in each step: the last step is among the births."""
    by_shape: dict[Shape, Blame] = {}
    for storage in rest:
        if chosen.is_intended(storage) or _is_bounded(chosen, storage):
            continue
        anchor = _bridge(chosen, storage, retained)
        shape = _shape(chosen, anchor)
        entry = by_shape.setdefault(shape, Blame(Verdict.LINGERING, shape, []))
        if anchor not in entry.references:
            entry.references.append(anchor)
        entry.behind.append(storage)
    return [leak for leak in by_shape.values() if any(born[s] == history.last for s in leak.behind)]


def _bridge(chosen: Chosen, storage: int, retained: Retained) -> int:
    """The nearest reference without which no way leads to the storage, below all that is alive on purpose; else the nearest."""
    node = anchor = chosen.anchor[storage]
    while chosen.status[node][0] is not Leaking.NO:
        above = chosen.above(node)
        can_cut = node not in chosen.edge or is_cuttable(chosen.edge[node])
        if can_cut and retained.is_below(storage, node) and retained.is_bridge(above, node):
            return node
        if above is None:
            break
        node = above
    return anchor


def _is_bounded(chosen: Chosen, storage: int) -> bool:
    return any(chosen.node(node).bound is not None for node in chosen.path(storage))


def _shape(chosen: Chosen, anchor: int) -> Shape:
    """The anchor's shape; one and the same for all variables of a running loop."""
    above = chosen.above(anchor)
    edge = chosen.edge.get(anchor)
    if edge is not None and edge.kind is EdgeKind.LOCAL and above is not None and chosen.above(above) is None:
        return chosen.shapes.longer(chosen.shape[above], (chosen.node(above).label, *LOCALS[1:]))
    root = chosen.root_of(anchor)
    if above is None and root.kind is RootKind.LOCAL:
        return chosen.shapes.longer(0, (root.where or "", *LOCALS[1:]))
    return chosen.shape[anchor]


def _with_outer(chosen: Chosen, growing: list[Blame], lingering: list[Blame]) -> Iterable[Blame]:
    """Lingering leaks inside one another are one, the outermost; one that a growing leak hangs below is told with that."""
    yield from growing
    owner = {node: leak for leak in lingering for node in leak.references}
    gone: set[int] = set()
    for leak in growing:
        for reference in leak.references:
            outer = _outermost(chosen, reference, owner)
            if outer is not None and id(outer) not in gone:
                gone.add(id(outer))
                leak.beside.extend(outer.behind)
    for leak in lingering:
        homes = {id(outer): outer for node in leak.references if (outer := _outermost(chosen, node, owner)) is not None}
        home = next(iter(homes.values()))
        if len(homes) == 1 and home is not leak and id(leak) not in gone:
            gone.add(id(leak))
            home.behind.extend(leak.behind)
    yield from (leak for leak in lingering if id(leak) not in gone)


def _outermost(chosen: Chosen, reference: int, owner: Mapping[int, Blame]) -> Blame | None:
    return next((owner[node] for node in chosen.path(reference) if node in owner), None)

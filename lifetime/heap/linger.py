"""What is replaced in each step but lives into the next: it raises the floor, not the slope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lifetime.heap.blame import Blame
from lifetime.heap.chosen import Chosen
from lifetime.heap.dominators import Retained
from lifetime.heap.fingerprint import Shape
from lifetime.heap.graph import EdgeKind, History, NodeKind
from lifetime.heap.model import Leaking, RootKind, Verdict
from lifetime.heap.references import Token, is_cuttable

OWN_VARIABLES = "<its own variables>"
MAIN = "__main__"


def lingering(chosen: Chosen, rest: Iterable[int], born: Mapping[int, int], history: History, retained: Retained) -> list[Blame]:
    """The leaks among storages in no growing one: of holders that hold something of the last step. What is replaced on purpose
    (gradients, registered buffers, optimizer state, bounded containers) is none."""
    holders: dict[tuple[Shape, int | None], list[int]] = {}
    anchors: dict[int, int] = {}
    for storage in rest:
        if not chosen.is_intended(storage):
            anchor = chosen.anchor[storage]
            if anchor not in anchors:
                anchors[anchor] = _bridge(chosen, anchor, retained)
            node = anchors[anchor]
            holders.setdefault((_shape(chosen, node), chosen.above(node)), []).append(storage)
    leaks: dict[Shape, Blame] = {}
    for (shape, _), storages in holders.items():
        if any(born[s] == history.last for s in storages):
            leak = leaks.setdefault(shape, Blame(Verdict.LINGERING, shape))
            leak.references.update(dict.fromkeys(anchors[chosen.anchor[s]] for s in storages))
            leak.behind.extend(storages)
    return list(leaks.values())


def _bridge(chosen: Chosen, anchor: int, retained: Retained) -> int:
    """The nearest reference without which no way leads to the anchor, below all that is alive on purpose; else the anchor."""
    node = anchor
    while chosen.status[node][0] is not Leaking.NO:
        above = chosen.above(node)
        can_cut = node not in chosen.edge or is_cuttable(chosen.edge[node])
        if can_cut and retained.is_bridge(above, node) and retained.is_below(anchor, node):
            return node
        if above is None:
            break
        node = above
    return anchor


def _shape(chosen: Chosen, node: int) -> Shape:
    """The reference's shape; one and the same for all variables of a running loop, in a function or at the top of a program."""
    above, edge, root = chosen.above(node), chosen.edge.get(node), chosen.root_of(node)
    if edge is not None and above is not None and chosen.above(above) is None:
        place = chosen.node(above)
        at_top = place.kind is NodeKind.MODULE and place.label == MAIN and chosen.node(node).kind is NodeKind.TENSOR
        if edge.kind is EdgeKind.LOCAL or at_top:
            return chosen.shapes.longer(chosen.shape[above], _own(place.label))
    if above is None and root.kind is RootKind.LOCAL:
        return chosen.shapes.longer(chosen.shapes.empty, _own(root.name.rpartition(".")[0]))
    return chosen.shape[node]


def _own(place: str) -> Token:
    return (place, EdgeKind.LOCAL.value, OWN_VARIABLES)


def one_each(chosen: Chosen, grown: Sequence[Blame], lingered: Sequence[Blame]) -> list[Blame]:
    """Lingering leaks inside one another made one, the outermost; one that a growing leak hangs below is told with that."""
    outer = _outermost(chosen, lingered)
    gone: set[int] = set()
    for leak in grown:
        for reference in leak.references:
            above = outer.get(reference)
            if above is not None and id(above) not in gone:
                gone.add(id(above))
                leak.beside.extend(above.behind)
    for leak in lingered:
        homes = {id(above): above for node in leak.references if (above := outer[node]) is not None}
        home = next(iter(homes.values()))
        if len(homes) == 1 and home is not leak and id(leak) not in gone:
            gone.add(id(leak))
            home.behind.extend(leak.behind)
    return [*grown, *(leak for leak in lingered if id(leak) not in gone)]


def _outermost(chosen: Chosen, leaks: Sequence[Blame]) -> dict[int, Blame | None]:
    """For each node the first leak on the way down to it."""
    through = {node: leak for leak in leaks for node in leak.references}
    outer: dict[int, Blame | None] = {}
    for node in chosen.order:
        above = chosen.above(node)
        outer[node] = (outer[above] if above is not None else None) or through.get(node)
    return outer

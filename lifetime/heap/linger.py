"""What is replaced in each step but lives into the next: it raises the floor, not the slope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lifetime.heap.blame import Blame
from lifetime.heap.chosen import Chosen, is_place
from lifetime.heap.dominators import Retained
from lifetime.heap.fingerprint import EMPTY, Shape
from lifetime.heap.graph import EdgeKind, History, Node, NodeKind
from lifetime.heap.model import Leaking, RootKind, Verdict
from lifetime.heap.references import Token, is_cuttable, reference

OWN_VARIABLES = "<its own variables>"
MAIN = "__main__"
_BUNDLES = frozenset({"tuple", "list", "dict"})
"""What arguments and batches come in."""


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
    """The reference's shape; one and the same for all variables of running functions and for those at the top of a program."""
    if chosen.root_of(node).kind is RootKind.LOCAL and _is_variable(chosen, node):
        return chosen.shapes.longer(EMPTY, (RootKind.LOCAL.value, EdgeKind.LOCAL.value, OWN_VARIABLES))
    above = chosen.above(node)
    if above is not None and _is_main(chosen.node(above)) and chosen.node(node).kind is NodeKind.TENSOR:
        return chosen.shapes.longer(EMPTY, (MAIN, EdgeKind.GLOBAL.value, OWN_VARIABLES))
    return chosen.shape[node]


def variables(chosen: Chosen, nodes: Iterable[int]) -> tuple[Token, ...]:
    """What tells one function's own variables from another's: the functions and the names, in order."""
    return tuple(sorted({_variable(chosen, node) for node in nodes}))


def _variable(chosen: Chosen, node: int) -> Token:
    root = chosen.root_of(node)
    path = chosen.path(node)
    if not is_place(chosen.node(path[0])) or len(path) == 1:
        return (root.name, root.kind.value, OWN_VARIABLES)
    return (chosen.node(path[0]).label, root.kind.value, reference(chosen.edge[path[1]]))


def _is_variable(chosen: Chosen, node: int) -> bool:
    """Whether a running function's variable is the tensor, or the tuple, list or dictionary that it came in."""
    holders = [chosen.node(holder) for holder in chosen.path(node)[:-1]]
    return all(one.kind is NodeKind.FRAME or one.type_name.rpartition(".")[2] in _BUNDLES for one in holders)


def _is_main(node: Node) -> bool:
    return node.kind is NodeKind.MODULE and node.label == MAIN


def one_each(chosen: Chosen, grown: Sequence[Blame], lingered: Sequence[Blame]) -> list[Blame]:
    """Lingering leaks inside one another made one, the outermost; one that a growing leak hangs below is told with that."""
    outer = _outermost(chosen, lingered)
    gone: set[int] = set()
    for leak in grown:
        for node in leak.references:
            above = outer.get(node)
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

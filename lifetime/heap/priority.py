"""Which way to a storage says most: what a path pays for its root and for each of its references."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lifetime.heap.graph import EdgeKind, NodeKind, RootRef
from lifetime.heap.known import ASIDE
from lifetime.heap.model import RootKind
from lifetime.heap.paths import Numbered, Start
from lifetime.heap.status import RUNNING

THROUGH_SURVIVOR = 1
BARE_VARIABLE = 2
OLD_LEAF = 16
"""A graph refers to parameters, but they are not alive because of it, and what hangs on them is not either."""
_FROM_GRAPH = frozenset({EdgeKind.VARIABLE, EdgeKind.SAVED})
KNOWN_HOLDER = 4
RUNNING_FRAME = 8
LIBRARY_FRAME = 3
"""More than a variable of the program's own loop: the frames of the call that is under way hold the same tensors as arguments."""
SIGNAL_HANDLER = RUNNING_FRAME + LIBRARY_FRAME + 1
"""A trainer that hears signals is reached from its handler, with all that it has: the functions that run it say more."""
_HANDLERS = "signal.getsignal("
_LIBRARIES = ("site-packages", "dist-packages", "lib/python3")
_ORDER = list(RootKind)
_PLACES = frozenset({NodeKind.MODULE, NodeKind.FRAME, NodeKind.CLASS})


def starts(roots: Sequence[RootRef], graph: Numbered, targets: Sequence[int]) -> list[Start]:
    """The roots in the order of the visit: running frames late, the outermost first, signal handlers last, a variable that is
    itself the tensor after others."""

    def penalty(k: int) -> int:
        bare = BARE_VARIABLE * (graph.nodes[targets[k]].kind is NodeKind.TENSOR)
        if roots[k].kind not in RUNNING:
            return bare + SIGNAL_HANDLER * roots[k].name.startswith(_HANDLERS)
        return RUNNING_FRAME + LIBRARY_FRAME * any(part in (roots[k].where or "") for part in _LIBRARIES) + bare

    order = sorted(range(len(roots)), key=lambda k: (penalty(k), _ORDER.index(roots[k].kind), -roots[k].depth, roots[k].name, k))
    return [(penalty(k), k) for k in order]


def tolls(graph: Numbered, born: Iterable[int]) -> dict[int, int]:
    """What a path pays for an edge. A survivor is a poor explanation of another one, so is a library's known holder; a variable
    of a loop is rebound by its next turn, so any other holder says more; a bare storage says less than its tensor."""
    toll: dict[int, int] = {}
    aside = [k for k, node in enumerate(graph.nodes) if node.type_name in ASIDE]
    toll.update((edge, KNOWN_HOLDER) for node in aside for edge in graph.leaving(node))
    owners = {graph.source[e] for storage in born for e in graph.entering(storage)}
    leaves = [k for k, edge in enumerate(graph.edges) if edge.kind in _FROM_GRAPH and graph.target[k] not in owners]
    toll.update(dict.fromkeys(leaves, OLD_LEAF))
    for node in owners:
        is_bare = graph.nodes[node].kind is not NodeKind.TENSOR
        for edge in graph.leaving(node):
            if is_bare or graph.nodes[graph.target[edge]].kind is not NodeKind.STORAGE:
                toll[edge] = THROUGH_SURVIVOR
        for edge in graph.entering(node):
            if graph.nodes[graph.source[edge]].kind in _PLACES:
                toll[edge] = BARE_VARIABLE
    return toll

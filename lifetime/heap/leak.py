"""One leak before it is proved: its chain, its storages, and the references whose loss should free them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifetime.heap.blame import Blame
from lifetime.heap.chosen import Chosen, is_place
from lifetime.heap.dominators import Retained
from lifetime.heap.fingerprint import fingerprint
from lifetime.heap.graph import Edge, Node
from lifetime.heap.linger import OWN_VARIABLES, variables
from lifetime.heap.links import NATIVE_LINK, consistent, cycle, links, root_link, rooted, unrooted
from lifetime.heap.loops import Loop
from lifetime.heap.model import Chain, Leaking, RootKind, Verdict
from lifetime.heap.paths import Numbered
from lifetime.heap.references import Token, reference
from lifetime.heap.status import Status, inspect


@dataclass(frozen=True)
class Leak:
    """`path` are the labelled edges down to the largest storage and `holders` their sources, `cuts` the edges that are to be cut.
    `expected` are the storages that should die then, `would_free` the bytes that the graph alone says would go; `blamed` is the
    link of the chain that stands for the cuts."""

    verdict: Verdict
    tokens: tuple[Token, ...]
    storages: tuple[int, ...]
    largest: int
    tensor: Node
    chain: Chain
    blamed: int
    holders: tuple[Node, ...]
    path: tuple[Edge, ...]
    cuts: tuple[Edge, ...]
    expected: tuple[int, ...]
    would_free: int
    is_rooted: bool
    is_judged: bool = True
    is_of_loop: bool = False
    """Whether a loop's own variables hold it, each of which the next step rebinds."""

    @property
    def tensor_status(self) -> Status:
        """Whether the tensor itself is alive on purpose."""
        return inspect(self.tensor)

    @property
    def is_growing(self) -> bool:
        return self.verdict is not Verdict.LINGERING

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.tokens)


def from_root(
    chosen: Chosen, blame: Blame, born: Mapping[int, int], sizes: Mapping[int, int], retained: Retained, judged: bool = True
) -> Leak:
    """A leak that a root reaches; if not `judged` only who holds it is asked, and nothing is said to be leaking."""
    tokens = chosen.shapes.tokens(blame.shape)
    of_loop = any(one[2] == OWN_VARIABLES for one in tokens)
    largest = _shown(chosen, blame.behind, born, sizes)
    path = chosen.path(largest)
    root = chosen.root_of(largest)
    edges = tuple(chosen.edge[node] for node in path[1:])
    holders = [chosen.node(node) for node in path[:-1]]
    told, place = links(holders, edges, [_status(chosen, node, judged) for node in path[:-1]])
    direct = not is_place(chosen.node(path[0])) and root.kind is not RootKind.NATIVE
    number = next((k for k, node in enumerate(path) if node in blame.references), 0)
    blamed = place[number - 1] + direct if number else 0
    if direct:
        told.insert(0, root_link(root))
    chain = rooted(root, direct, consistent(told, blamed, judged and not of_loop), edges)
    cuts = tuple(chosen.edge[node] for node in blame.references if node in chosen.edge)
    return Leak(
        blame.verdict,
        variables(chosen, blame.references) if of_loop else tokens,
        tuple(blame.storages),
        largest,
        _tensor(holders, chosen.node(largest)),
        chain,
        blamed,
        tuple(holders),
        edges,
        cuts,
        tuple(blame.behind),
        sum(retained.below(node) for node in blame.references if retained.is_bridge(chosen.above(node), node)),
        True,
        judged,
        of_loop,
    )


def _status(chosen: Chosen, node: int, judged: bool) -> Status:
    """Where nothing is judged a model is a model, however new it is."""
    told = chosen.status[node]
    return told if judged or told[0] is not Leaking.UNKNOWN else inspect(chosen.node(node))


def _shown(chosen: Chosen, storages: Sequence[int], born: Mapping[int, int], sizes: Mapping[int, int]) -> int:
    """The storage whose chain stands for all: the largest, by the shortest way, the oldest; then what reads first."""

    def key(storage: int) -> tuple[int, int, int]:
        return -sizes[storage], chosen.depth[storage], born[storage]

    best = min(map(key, storages))
    return min((s for s in storages if key(s) == best), key=lambda s: [reference(chosen.edge[n]) for n in chosen.path(s)[1:]])


def from_loops(
    graph: Numbered, kind: RootKind, verdict: Verdict, found: Sequence[Loop], born: Mapping[int, int], sizes: Mapping[int, int]
) -> Leak:
    """Loops of one look, one of each step: one leak."""
    storages = [s for loop in found for s in loop.storages]
    shown = min(
        found, key=lambda loop: (-max(sizes[s] for s in loop.storages), len(loop.edges), min(born[s] for s in loop.storages))
    )
    holders = [graph.nodes[graph.source[e]] for e in shown.path]
    largest = graph.target[shown.path[-1]] if shown.path else shown.storages[0]
    told, place = links(holders, shown.edges, [inspect(node, None, fresh=True) for node in holders])
    native = kind is RootKind.NATIVE or not told
    if native:
        told.insert(0, NATIVE_LINK)
    blamed = place[shown.cut] + native if shown.cuts else 0
    told, closes = cycle(told, place[shown.turn] if 0 < shown.turn < len(place) else len(told) * bool(shown.turn))
    chain = unrooted(kind, consistent(told, blamed), closes)
    return Leak(
        verdict,
        ((kind.value, "root", ""), *shown.tokens),
        tuple(storages),
        largest,
        _tensor(holders, graph.nodes[largest]),
        chain,
        blamed,
        tuple(holders),
        shown.edges,
        tuple(edge for loop in found for edge in loop.cuts),
        tuple(s for loop in found for s in sorted(loop.frees)),
        sum(sizes[s] for loop in found for s in loop.frees),
        False,
    )


def _tensor(holders: Iterable[Node], storage: Node) -> Node:
    """The node whose facts describe the bytes: the last tensor of the chain, else the storage."""
    return next((node for node in reversed(list(holders)) if node.tensor is not None), storage)

"""A reference beside the chain, with the whole way from a root over it to a storage: what to tell of a second holder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from lifetime.heap.chosen import is_place
from lifetime.heap.cycles import descend, traced
from lifetime.heap.expression import readable
from lifetime.heap.graph import Edge, ObjectId, RootRef
from lifetime.heap.links import links, root_link, rooted
from lifetime.heap.model import Chain, RootKind
from lifetime.heap.paths import Numbered, Tree
from lifetime.heap.references import holder, reference
from lifetime.heap.status import UNKNOWN
from lifetime.heap.trunk import Label


@dataclass(frozen=True)
class Way:
    """`link` is the index of the reference in the chain."""

    chain: Chain
    link: int
    text: str


class Ways:
    """`tree` has the best way to every object that a root reaches."""

    def __init__(self, graph: Numbered, tree: Tree, roots: Sequence[RootRef], label: Label) -> None:
        self._graph = graph
        self._tree = tree
        self._roots = roots
        self._label = label

    def over(self, edge: Edge, storages: Collection[int]) -> Way | None:
        """The way over `edge` to the nearest of the storages; None where no root reaches its holder."""
        graph = self._graph
        source, target = graph.number[edge.source], graph.number[edge.target]
        if not self._tree.reached(source):
            return None
        number, above = self._tree.path(source)
        below = self._down(target, storages)
        edges = (*self._label([graph.edges[e] for e in above]), edge, *self._label([graph.edges[e] for e in below]))
        holders = [graph.nodes[graph.number[one.source]] for one in edges]
        root = self._roots[number]
        told, place = links(holders, edges, [UNKNOWN] * len(edges))
        is_direct = not is_place(holders[0]) and root.kind is not RootKind.NATIVE
        if is_direct:
            told.insert(0, root_link(root))
        chain = rooted(root, is_direct, told, edges)
        written = readable(chain, len(chain.links)) or f"{holder(holders[len(above)])}{reference(edge)}"
        return Way(chain, place[len(above)] + is_direct, written)

    def _down(self, node: int, storages: Collection[int]) -> list[int]:
        """The edges of a shortest way from the node to one of the storages."""
        via = descend(self._graph, [node], range(len(self._graph)))
        ways = [traced(self._graph, storage, via) for storage in storages if storage in via]
        return min(ways, key=len, default=[])

    def below(self, tops: Iterable[ObjectId]) -> set[int]:
        """The nodes of `tops` and all that they lead to."""
        numbers = [self._graph.number[top] for top in tops]
        return {*numbers, *descend(self._graph, numbers, range(len(self._graph)))}

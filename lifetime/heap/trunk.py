"""The chains that were chosen, as one tree: the union of the best paths to some storages, each reference labelled once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lifetime.heap.graph import Edge, Node, RootRef
from lifetime.heap.paths import Numbered, Tree

Label = Callable[[Sequence[Edge]], Sequence[Edge]]


class Trunk:
    """A reference is named by the node that it refers to: in a tree there is one. `order` lists the nodes from the roots down,
    `edge` gives the labelled reference into each node that has a holder."""

    def __init__(self, graph: Numbered, tree: Tree, roots: Sequence[RootRef], storages: Iterable[int], label: Label) -> None:
        self.graph = graph
        self.roots = roots
        self.order = _top_down(graph, tree, storages)
        last = {node: edge for node in self.order if (edge := tree.last[node]) is not None}
        self._above = {node: graph.source[edge] if edge >= 0 else None for node, edge in last.items()}
        self._root: dict[int, int] = {}
        for node in self.order:
            above = self._above[node]
            self._root[node] = self._root[above] if above is not None else -1 - last[node]
        below = [node for node in self.order if self._above[node] is not None]
        self.edge: dict[int, Edge] = dict(zip(below, label([graph.edges[last[node]] for node in below]), strict=True))

    def node(self, number: int) -> Node:
        return self.graph.nodes[number]

    def above(self, node: int) -> int | None:
        """The holder on the best path; None where a root refers to the node."""
        return self._above[node]

    def root_of(self, node: int) -> RootRef:
        """The root of the best path to the node."""
        return self.roots[self._root[node]]

    def path(self, node: int) -> list[int]:
        """The nodes from the one that a root refers to down to `node`."""
        found = [node]
        while (above := self._above[found[-1]]) is not None:
            found.append(above)
        return found[::-1]


def _top_down(graph: Numbered, tree: Tree, storages: Iterable[int]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for node in storages:
        fresh = []
        at: int | None = node
        while at is not None and at not in seen:
            fresh.append(at)
            seen.add(at)
            last = tree.last[at]
            at = graph.source[last] if last is not None and last >= 0 else None
        order.extend(reversed(fresh))
    return order

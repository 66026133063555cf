"""Immediate dominators, and from them what a node retains: the bytes that would go if it went.

Source: L. Georgiadis, R. Tarjan, R. Werneck, "Finding dominators in practice", J. Graph Algorithms Appl. 10 (2006): SEMI-NCA.
Breadth-first approximations attribute too little (LeakCanary, notes/dominator-tree.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lifetime.heap.paths import Numbered

Leaving = Callable[[int], Sequence[int]]


class Retained:
    """What each node that the roots' `targets` reach retains, storages of `sizes` counted once, however many views they have."""

    def __init__(self, graph: Numbered, targets: Iterable[int], sizes: Mapping[int, int]) -> None:
        self._graph = graph
        self._root = len(graph)
        first = list(dict.fromkeys(targets))
        target = graph.target

        def leaving(node: int) -> list[int]:
            return first if node == self._root else [target[edge] for edge in graph.leaving(node)]

        self._first = frozenset(first)
        self._dominator = immediate_dominators(len(graph) + 1, self._root, leaving)
        self._bytes = dict(sizes)
        for node, above in reversed(self._dominator.items()):
            if node in self._bytes:
                self._bytes[above] = self._bytes.get(above, 0) + self._bytes[node]

    def below(self, node: int) -> int:
        """The bytes that go with the node."""
        return self._bytes.get(node, 0)

    def is_bridge(self, source: int | None, node: int) -> bool:
        """Whether every way from the roots to `node` ends with the reference from `source` (None: from a root itself): cutting it
        frees what the node retains."""
        if self._dominator.get(node) != (self._root if source is None else source) or (node in self._first) != (source is None):
            return False
        others = (self._graph.source[edge] for edge in self._graph.entering(node))
        return all(other == source or other not in self._dominator or self.is_below(other, node) for other in others)

    def is_below(self, node: int, top: int) -> bool:
        """Whether every way from the roots to `node` passes `top`."""
        while node != self._root and node != top:
            node = self._dominator[node]
        return node == top


def immediate_dominators(nodes: int, root: int, leaving: Leaving) -> dict[int, int]:
    """For each node that `root` reaches the one through which every way there goes last, in an order in which it comes first.

    Nodes are numbers below `nodes`; `leaving(node)` gives the ones that a node refers to.
    """
    order, above, entering = _depth_first(nodes, root, leaving)
    low = _semidominators(above, entering)
    near = list(above)
    for v in range(1, len(order)):
        while near[v] > low[v]:
            near[v] = near[near[v]]
    return {order[v]: order[near[v]] for v in range(1, len(order))}


def _depth_first(nodes: int, root: int, leaving: Leaving) -> tuple[list[int], list[int], list[list[int] | None]]:
    """Nodes in preorder; then in preorder numbers the tree's parent of each and, where they are several, all that refer to it."""
    number = [-1] * nodes
    order: list[int] = []
    above: list[int] = []
    several: dict[int, list[int]] = {}
    first = [-1] * nodes
    stack: list[tuple[int, int]] = [(root, 0)]
    while stack:
        node, parent = stack.pop()
        if number[node] >= 0:
            continue
        mine = number[node] = len(order)
        order.append(node)
        above.append(parent)
        for there in reversed(leaving(node)):
            if first[there] < 0:
                first[there] = mine
            elif there in several:
                several[there].append(mine)
            else:
                several[there] = [first[there], mine]
            if number[there] < 0:
                stack.append((there, mine))
    return order, above, [several.get(node) for node in order]


def _semidominators(above: Sequence[int], entering: Sequence[Sequence[int] | None]) -> list[int]:
    """The lowest preorder number from which a way leads to each node past higher numbers only."""
    low = list(above)
    up = list(above)
    best = list(range(len(above)))
    for v in range(len(above) - 1, 0, -1):
        for u in entering[v] or ():
            if u > v:
                _compress(u, v, up, best)
                u = best[u]
            if u < low[v]:
                low[v] = u
        best[v] = low[v]
    return low


def _compress(node: int, limit: int, up: list[int], best: list[int]) -> None:
    """Afterwards `best[node]` is the least of the tree path from `node` up to `limit`, not included, and the path is short."""
    path = []
    while up[node] > limit:
        path.append(node)
        node = up[node]
    for v in reversed(path):
        parent = up[v]
        if best[parent] < best[v]:
            best[v] = best[parent]
        up[v] = up[parent]

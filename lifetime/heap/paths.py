"""The shortest prioritised way from a root to every node: breadth first, the same in every run, locals last.

A snapshot is numbered first: nodes 0..n-1 in its own order, edges by index, so that 400 000 nodes cost lists of ints.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import accumulate

from lifetime.heap.graph import ObjectId, Snapshot

Start = tuple[int, int]
"""(penalty, index of the root in `snapshot.roots`)."""


class Numbered:
    """A snapshot's edges as numbers: `source[e]`, `target[e]`, and for each node the edges that leave and enter it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.ids: list[ObjectId] = list(snapshot.nodes)
        self.number: dict[ObjectId, int] = {node: k for k, node in enumerate(self.ids)}
        self.nodes = list(snapshot.nodes.values())
        known = self.number
        self.edges = [e for e in snapshot.edges if e.source in known and e.target in known]
        self.source = [known[e.source] for e in self.edges]
        self.target = [known[e.target] for e in self.edges]
        self.rank = self._ranks()
        size = len(self.rank)
        by_look = [s * size + self.rank[t] for s, t in zip(self.source, self.target, strict=True)]
        self._leaving = _Rows(self.source, by_look, size)
        self._entering = _Rows(self.target, self.target, size)

    def __len__(self) -> int:
        return len(self.ids)

    def leaving(self, node: int) -> list[int]:
        """Edges from `node`, in an order that depends on what they point to and not on addresses."""
        return self._leaving.row(node)

    def entering(self, node: int) -> list[int]:
        return self._entering.row(node)

    def _ranks(self) -> list[int]:
        """A number for each node that orders kinds, types and labels; equal for nodes that look the same."""
        looks = [(n.kind.value, n.type_name, n.label) for n in self.nodes]
        order = {look: k for k, look in enumerate(sorted(set(looks)))}
        return [order[look] for look in looks]


class _Rows:
    """Edges gathered by one of their ends: a flat list and where each node's part of it starts."""

    def __init__(self, end: Sequence[int], key: Sequence[int], nodes: int) -> None:
        self._flat = sorted(range(len(end)), key=key.__getitem__)
        counts = [0] * nodes
        for node in end:
            counts[node] += 1
        self._start = [0, *accumulate(counts)]

    def row(self, node: int) -> list[int]:
        return self._flat[self._start[node] : self._start[node + 1]]


class Tree:
    """Each reached node's last edge on its best path; `-1 - r` where root `r` refers to the node itself."""

    def __init__(self, graph: Numbered) -> None:
        self._graph = graph
        self.last: list[int | None] = [None] * len(graph)

    def reached(self, node: int) -> bool:
        return self.last[node] is not None

    def path(self, node: int) -> tuple[int, list[int]]:
        """The root's index and the edges from its target down to `node`."""
        edges = []
        last = self.last[node]
        assert last is not None, "asked for the path to a node that no root reaches"
        while last >= 0:
            edges.append(last)
            above = self.last[self._graph.source[last]]
            assert above is not None
            last = above
        edges.reverse()
        return -1 - last, edges


def search(graph: Numbered, starts: Sequence[Start], targets: Sequence[int], toll: Mapping[int, int]) -> Tree:
    """The best path to every node: the least sum of penalties, then the fewest references, then a fixed order.

    `starts` gives roots in the order to be visited, `targets[r]` the node that root r refers to, `toll` the penalty of an edge
    where it has one.
    """
    tree = Tree(graph)
    last, target = tree.last, graph.target
    waiting: dict[Start, list[int]] = {}
    for penalty, root in starts:
        waiting.setdefault((penalty, 0), []).append(-1 - root)
    heap = sorted(waiting)
    while heap:
        penalty, depth = key = heapq.heappop(heap)
        for via in waiting.pop(key):
            node = target[via] if via >= 0 else targets[-1 - via]
            if last[node] is not None:
                continue
            last[node] = via
            for edge in graph.leaving(node):
                there = target[edge]
                if last[there] is not None:
                    continue
                place = (penalty + toll.get(edge, 0), depth + 1)
                if place not in waiting:
                    waiting[place] = []
                    heapq.heappush(heap, place)
                waiting[place].append(edge)
    return tree

"""Immediate dominators, and from them what a node retains: the bytes that would go if it went.

Source: L. Georgiadis, R. Tarjan, R. Werneck, "Finding dominators in practice", J. Graph Algorithms Appl. 10 (2006): SEMI-NCA.
Breadth-first approximations attribute too little (LeakCanary, notes/dominator-tree.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Leaving = Callable[[int], Sequence[int]]


def immediate_dominators(nodes: int, root: int, leaving: Leaving) -> list[int | None]:
    """For each of `nodes` numbers the node through which every way from `root` goes last; None for the root and what it does
    not reach. `leaving(node)` gives the nodes it refers to."""
    order, above, entering = _depth_first(nodes, root, leaving)
    low = _semidominators(above, entering)
    near = list(above)
    for v in range(1, len(order)):
        while near[v] > low[v]:
            near[v] = near[near[v]]
    found: list[int | None] = [None] * nodes
    for v in range(1, len(order)):
        found[order[v]] = order[near[v]]
    return found


def retained(dominators: Sequence[int | None], bottom_up: Sequence[int], weight: Mapping[int, int]) -> list[int]:
    """The weight below each node in the dominator tree. `bottom_up`: every node before its dominator; a storage is one node, so
    that its views count once."""
    total = [0] * len(dominators)
    for node, own in weight.items():
        total[node] = own
    for node in bottom_up:
        above = dominators[node]
        if above is not None:
            total[above] += total[node]
    return total


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

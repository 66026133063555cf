"""The fewest references whose loss separates storages from every root: the answer where one holder was not enough.

Augmenting paths from the storages upwards, breadth first; references that cannot be cut have no limit. Of several smallest
cuts it is the one nearest to the storages. Source: L. Ford, D. Fulkerson, "Maximal flow through a network" (1956).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from lifetime.heap.paths import Numbered

MOST = 64
"""References beyond which a cut is no advice any more."""


def minimum_cut(
    graph: Numbered, storages: Iterable[int], tops: Collection[int], can_cut: Callable[[int], bool], most: int = MOST
) -> list[int] | None:
    """The edges of the smallest cut between `tops` and the storages, in order; None where there is none of at most `most`.

    `can_cut(edge)` says whether a reference can be taken away; a top's own references are asked about too.
    """
    bottom = list(storages)
    flow: dict[int, int] = {}
    for _ in range(most + 1):
        way, seen = _augment(graph, bottom, tops, can_cut, flow)
        if way is None:
            return sorted({e for node in seen for e in graph.entering(node) if graph.source[e] not in seen and e in flow})
        if all(not can_cut(edge) for edge, by in way if by > 0) and all(by > 0 for _, by in way):
            return None
        for edge, by in way:
            flow[edge] = flow.get(edge, 0) + by
            if not flow[edge]:
                del flow[edge]
    return None


def _augment(
    graph: Numbered, bottom: Collection[int], tops: Collection[int], can_cut: Callable[[int], bool], flow: dict[int, int]
) -> tuple[list[tuple[int, int]] | None, Collection[int]]:
    """A way up that still has room, as edges and what each gains or gives back; else None and the nodes that were reached."""
    via: dict[int, tuple[int, int] | None] = dict.fromkeys(bottom)
    waiting = deque(bottom)
    while waiting:
        node = waiting.popleft()
        if node in tops:
            return _way(graph, node, via), via
        for edge in graph.entering(node):
            above = graph.source[edge]
            if above not in via and (edge not in flow or not can_cut(edge)):
                via[above] = (edge, 1)
                waiting.append(above)
        for edge in graph.leaving(node):
            below = graph.target[edge]
            if below not in via and flow.get(edge, 0) > 0:
                via[below] = (edge, -1)
                waiting.append(below)
    return None, via


def _way(graph: Numbered, top: int, via: dict[int, tuple[int, int] | None]) -> list[tuple[int, int]]:
    way = []
    step = via[top]
    while step is not None:
        edge, by = step
        way.append(step)
        step = via[graph.target[edge] if by > 0 else graph.source[edge]]
    return way

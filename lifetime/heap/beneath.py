"""Cycles below the blamed references: they would keep storages by themselves, once nobody else does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from lifetime.heap.cycles import components, descend, is_cycle
from lifetime.heap.graph import Edge, Snapshot
from lifetime.heap.loops import loops
from lifetime.heap.paths import Numbered
from lifetime.heap.trunk import Label


def cycles_beneath(
    graph: Numbered, targets: Iterable[int], cuts: Sequence[Edge], storages: Sequence[int], sizes: Mapping[int, int], label: Label
) -> tuple[Edge, ...]:
    """The references that break them, labelled; none where a root holds some of the `storages` another way than by the `cuts`.

    `targets` are the nodes that roots refer to.
    """
    held = _held(graph, targets, {(edge.source, edge.target) for edge in cuts})
    if any(storage in held for storage in storages):
        return ()
    loose = [node for node in range(len(graph)) if node not in held]
    turning = {node for part in components(graph, loose) if is_cycle(graph, part) for node in part}
    rest = _part(graph, {*turning, *descend(graph, turning, frozenset(loose))})
    own = {rest.number[graph.ids[s]]: sizes[s] for s in storages if graph.ids[s] in rest.number}
    return tuple(edge for loop in loops(rest, sorted(own), own, label) for edge in loop.cuts)


def _held(graph: Numbered, targets: Iterable[int], gone: Collection[tuple[int, int]]) -> set[int]:
    """The nodes that roots lead to without the references that are `gone`."""
    waiting = list(targets)
    held = set(waiting)
    while waiting:
        for number in graph.leaving(waiting.pop()):
            edge, there = graph.edges[number], graph.target[number]
            if there not in held and (edge.source, edge.target) not in gone:
                held.add(there)
                waiting.append(there)
    return held


def _part(graph: Numbered, nodes: Collection[int]) -> Numbered:
    """Some of the nodes, with the references between them."""
    return Numbered(Snapshot({graph.ids[node]: graph.nodes[node] for node in sorted(nodes)}, tuple(graph.edges), (), {}))

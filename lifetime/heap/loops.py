"""Storages that no root reaches: the cycle that keeps them, and the one reference that breaks it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifetime.heap.chosen import Label
from lifetime.heap.cycles import ancestors, around, components, descend, is_cycle, sources, traced
from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind
from lifetime.heap.paths import Numbered
from lifetime.heap.references import Token, collapsed, is_cuttable, token

MOST_TRIES = 12
"""Edges of a cycle that are tried for breaking all of it; each try costs a pass over the part."""
_PREFERRED = (
    EdgeKind.CELL,
    EdgeKind.ATTRIBUTE,
    EdgeKind.GLOBAL,
    EdgeKind.HOOK,
    EdgeKind.GRAD,
    EdgeKind.ITEM,
    EdgeKind.KEY,
    EdgeKind.LOCAL,
    EdgeKind.BOUND,
    EdgeKind.TRACEBACK,
    EdgeKind.DEFAULT,
    EdgeKind.CLOSURE,
    EdgeKind.INTERNAL,
    EdgeKind.GRAD_FN,
    EdgeKind.SAVED,
)


@dataclass(frozen=True)
class Loop:
    """A source part and what hangs below it. `edges`: once around the cycle (`turn` of them, 0 where there is no cycle), then
    down to the largest storage; `cut` is the index of the edge to blame, `frees` the storages that go with it."""

    storages: tuple[int, ...]
    edges: tuple[Edge, ...]
    path: tuple[int, ...]
    turn: int
    cut: int
    frees: frozenset[int]
    tokens: tuple[Token, ...]


def loops(graph: Numbered, storages: Sequence[int], sizes: Mapping[int, int], label: Label) -> list[Loop]:
    """One for each source above the storages, cycles first; a storage below several belongs to the first."""
    within = ancestors(graph, storages)
    parts = sorted(sources(graph, within), key=lambda part: not is_cycle(graph, set(part)))
    left = dict.fromkeys(storages)
    found = []
    for part in parts:
        own = set(part)
        via = descend(graph, part, within)
        below = sorted(s for s in (*part, *via) if s in left)
        for storage in below:
            del left[storage]
        if below:
            found.append(_loop(graph, _Source(within, own, via), below, sizes, label))
    return found


@dataclass(frozen=True)
class _Source:
    """A source part inside all that no root reaches, and the ways down from it."""

    within: set[int]
    part: set[int]
    via: dict[int, int]


def _loop(graph: Numbered, source: _Source, below: Sequence[int], sizes: Mapping[int, int], label: Label) -> Loop:
    down = {s: traced(graph, None, s, source.via) for s in below}
    largest = min(below, key=lambda s: (-sizes[s], len(down[s]), s))
    top = graph.source[down[largest][0]] if down[largest] else largest
    turn = around(graph, top, source.part)
    path = (*turn, *down[largest])
    edges = tuple(label([graph.edges[e] for e in path]))
    cut, frees = _weakest(graph, source, path, edges, len(turn), below)
    return Loop(tuple(below), edges, path, len(turn), cut, frees, _tokens(graph, path, edges, len(turn), cut))


def _weakest(
    graph: Numbered, source: _Source, path: Sequence[int], edges: Sequence[Edge], turn: int, below: Sequence[int]
) -> tuple[int, frozenset[int]]:
    """The most natural edge of the cycle whose loss frees all below it, else the one that frees most."""
    if not turn:
        return _first_cuttable(edges), frozenset(below)
    tries = sorted((k for k in range(turn) if is_cuttable(edges[k])), key=lambda k: _rank(graph, path[k], edges[k]))
    best, freed = (tries[0] if tries else 0), frozenset[int]()
    for k in tries[:MOST_TRIES]:
        now = _freed(graph, source, {path[k]}, below)
        if len(now) > len(freed):
            best, freed = k, now
        if len(now) == len(below):
            break
    return best, freed


def _freed(graph: Numbered, source: _Source, cut: Collection[int], below: Iterable[int]) -> frozenset[int]:
    """The storages that no cycle of the part holds any more once the edges in `cut` are gone."""
    left = [c for c in components(graph, sorted(source.part), cut) if is_cycle(graph, set(c), cut)]
    inside = {node for cycle in left for node in cycle}
    held = descend(graph, inside, source.within, cut)
    return frozenset(s for s in below if s not in held and s not in inside)


def _first_cuttable(edges: Sequence[Edge]) -> int:
    return next((k for k, edge in enumerate(edges) if is_cuttable(edge)), 0)


def _rank(graph: Numbered, number: int, edge: Edge) -> tuple[int, int]:
    holder = graph.nodes[graph.source[number]]
    return _PREFERRED.index(edge.kind) + 100 * _is_fixed(holder), number


def _is_fixed(holder: Node) -> bool:
    """Whether the holder cannot let go by itself, as a program would make it: a tuple has no `clear`."""
    return holder.kind is NodeKind.OBJECT and holder.type_name.endswith("tuple")


def _tokens(graph: Numbered, path: Sequence[int], edges: Sequence[Edge], turn: int, cut: int) -> tuple[Token, ...]:
    """The cycle from the blamed reference around: the same wherever one enters it. Without a cycle the whole chain."""
    order = [*range(cut, turn), *range(cut)] if turn else range(len(edges))
    silent = {EdgeKind.NEXT, EdgeKind.VARIABLE, EdgeKind.STORAGE}
    return collapsed([token(graph.nodes[graph.source[path[k]]], edges[k]) for k in order if edges[k].kind not in silent])

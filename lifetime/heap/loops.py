"""Storages that no root reaches: the cycle that keeps them, and the one reference that breaks it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifetime.heap.chosen import SILENT
from lifetime.heap.cycles import ancestors, around, components, descend, is_cycle, sources, traced
from lifetime.heap.graph import Edge, EdgeKind, NodeKind
from lifetime.heap.paths import Numbered
from lifetime.heap.references import Token, collapsed, is_cuttable, token
from lifetime.heap.trunk import Label

MOST_TRIES = 12
"""Edges of a cycle that are tried for breaking all of it; each try costs a pass over the part."""
MOST_ROUNDS = 16
"""Times that what is left is looked at for cycles; in each round every cycle loses one reference."""
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
    EdgeKind.GRAD_FN,
    EdgeKind.SAVED,
)
"""What a person would cut first."""
_ANONYMOUS = frozenset({"dict", "OrderedDict", "tuple", "list", "cell", "set", "deque"})
_OWNING = frozenset({"_modules", "_parameters", "_buffers"})
"""Where a torch module keeps what it is made of: a reference back to it is the one that is too many."""


@dataclass(frozen=True)
class Loop:
    """A source part and what hangs below it.

    `edges`: once around the cycle (`turn` of them, 0 where there is no cycle), then down to the largest storage. `cut` is the
    index of the edge to blame; `cuts` that edge and one of each other cycle, through the part or below it, none where C++ owns the
    tensor itself; `frees` the storages that go with them.
    """

    storages: tuple[int, ...]
    path: tuple[int, ...]
    edges: tuple[Edge, ...]
    turn: int
    cut: int
    cuts: tuple[Edge, ...]
    frees: frozenset[int]
    tokens: tuple[Token, ...]


def loops(graph: Numbered, storages: Sequence[int], sizes: Mapping[int, int], label: Label) -> list[Loop]:
    """One for each source above the storages, cycles first; a storage below several belongs to the first."""
    within = ancestors(graph, storages)
    parts = sorted(sources(graph, within), key=lambda part: not is_cycle(graph, set(part)))
    left = set(storages)
    found = []
    for part in parts:
        source = _Source(graph, part, within, label)
        below = sorted(s for s in source.below() if s in left)
        left.difference_update(below)
        if below:
            found.append(source.loop(below, sizes))
    return found


class _Source:
    """A strongly connected part that nothing refers to, inside all that no root reaches."""

    def __init__(self, graph: Numbered, part: Sequence[int], within: set[int], label: Label) -> None:
        self._graph = graph
        self._part = set(part)
        self._within = within
        self._label = label
        self._via = descend(graph, part, within)

    def below(self) -> Iterable[int]:
        return (*self._part, *self._via)

    def loop(self, below: Sequence[int], sizes: Mapping[int, int]) -> Loop:
        graph = self._graph
        down = {s: traced(graph, s, self._via) for s in below}
        largest = min(below, key=lambda s: (-sizes[s], len(down[s]), [graph.rank[graph.target[e]] for e in down[s]]))
        top = graph.source[down[largest][0]] if down[largest] else largest
        turn = around(graph, top, self._part)
        back = self._steps_to_a_name(turn)
        turn = turn[len(turn) - back :] + turn[: len(turn) - back]
        path = (*turn, *turn[:back], *down[largest])
        edges = tuple(self._label([graph.edges[e] for e in path]))
        if not turn:
            cut = self._below_a_stranger(top, edges)
            alone = tuple(edges[k] for k in (cut,) if k is not None)
            return Loop(tuple(below), path, edges, 0, cut or 0, alone, frozenset(below), self._tokens(path, edges))
        cut = self._weakest(path, edges[: len(turn)], below)
        cuts, frees = self._all_cuts(path[cut], edges[cut], below)
        rotated = [*range(cut, len(turn)), *range(cut)]
        tokens = self._tokens([path[k] for k in rotated], [edges[k] for k in rotated])
        return Loop(tuple(below), path, edges, len(turn), cut, cuts, frees, tokens)

    def _below_a_stranger(self, top: int, edges: Sequence[Edge]) -> int | None:
        """The first reference that can be cut below a Python object that something outside Python's heap holds. Where that owns
        the tensor or the graph itself there is none."""
        if self._graph.nodes[top].kind in {NodeKind.TENSOR, NodeKind.AUTOGRAD, NodeKind.STORAGE}:
            return None
        return next((k for k, edge in enumerate(edges) if is_cuttable(edge)), None)

    def _steps_to_a_name(self, turn: Sequence[int]) -> int:
        """How many references to go back around the cycle so that it begins at something with a name, and not at its dictionary,
        its closure's tuple or a cell."""
        nodes, source = self._graph.nodes, self._graph.source
        back = (k for k in range(len(turn)) if nodes[source[turn[-k]]].type_name.rpartition(".")[2] not in _ANONYMOUS)
        return next(back, 0)

    def _weakest(self, path: Sequence[int], edges: Sequence[Edge], below: Sequence[int]) -> int:
        """The most natural edge of the cycle whose loss frees all below it, else the one that frees most. Cycles further down,
        those of the layers below, do not count: each has an edge of its own."""
        order = self._by_preference(path, edges)
        best, most = (order[0] if order else 0), 0
        for k in order[:MOST_TRIES]:
            now = len(self._freed({path[k]}, below, self._part))
            if now > most:
                best, most = k, now
            if now == len(below):
                break
        return best

    def _all_cuts(self, first: int, edge: Edge, below: Sequence[int]) -> tuple[tuple[Edge, ...], frozenset[int]]:
        """The blamed edge and one edge of each cycle that is left, the same kind of reference where the cycle has one."""
        gone, cuts = {first}, [edge]
        like = token(self._graph.nodes[self._graph.source[first]], edge)
        every = {*self._part, *self._via}
        for _ in range(MOST_ROUNDS):
            more = [found for part in self._cycles(gone, every) if (found := self._one_edge(part, gone, like))]
            gone.update(number for number, _ in more)
            cuts += [labelled for _, labelled in more]
            if not more:
                break
        return tuple(cuts), self._freed(gone, below, every)

    def _one_edge(self, part: Sequence[int], gone: Collection[int], like: Token) -> tuple[int, Edge] | None:
        """The reference of a cycle through the part that is to go: one `like` the blamed one, else the most natural."""
        alike = [node for node in part if self._graph.nodes[node].type_name == like[0]]
        turn = around(self._graph, min(alike or part), set(part), gone)
        edges = self._label([self._graph.edges[e] for e in turn])
        order = self._by_preference(turn, edges)
        holders = [self._graph.nodes[self._graph.source[e]] for e in turn]
        chosen = next((k for k in order if token(holders[k], edges[k]) == like), order[0] if order else None)
        return (turn[chosen], edges[chosen]) if chosen is not None else None

    def _cycles(self, without: Collection[int], nodes: Collection[int]) -> list[list[int]]:
        parts = components(self._graph, sorted(nodes), without)
        return [part for part in parts if is_cycle(self._graph, set(part), without)]

    def _freed(self, cut: Collection[int], below: Iterable[int], nodes: Collection[int]) -> frozenset[int]:
        """The storages that no cycle among the nodes holds any more once the edges in `cut` are gone."""
        inside = {node for cycle in self._cycles(cut, nodes) for node in cycle}
        held = descend(self._graph, inside, self._within, cut)
        return frozenset(s for s in below if s not in held and s not in inside)

    def _by_preference(self, path: Sequence[int], edges: Sequence[Edge]) -> list[int]:
        def key(k: int) -> tuple[bool, int, bool, int]:
            is_owning = _is_owning(edges[k]) or _is_owning(edges[k - 1])
            return self._is_fixed(path[k]), self._rank(path[k], edges[k]), is_owning, k

        return sorted((k for k, edge in enumerate(edges) if is_cuttable(edge)), key=key)

    def _rank(self, number: int, edge: Edge) -> int:
        in_dict = edge.kind is EdgeKind.ITEM and self._graph.nodes[self._graph.source[number]].type_name.endswith("dict")
        kind = EdgeKind.ATTRIBUTE if in_dict else edge.kind
        return _PREFERRED.index(kind) if kind in _PREFERRED else len(_PREFERRED)

    def _is_fixed(self, edge: int) -> bool:
        """Whether the holder cannot let go by itself, as a program would make it: a tuple has no `clear`."""
        holder = self._graph.nodes[self._graph.source[edge]]
        return holder.kind is NodeKind.OBJECT and holder.type_name.endswith("tuple")

    def _tokens(self, path: Sequence[int], edges: Sequence[Edge]) -> tuple[Token, ...]:
        """From the blamed reference around, the same wherever one enters the cycle; without a cycle the whole chain."""
        nodes, source = self._graph.nodes, self._graph.source
        told = zip(path, edges, strict=True)
        return collapsed([token(nodes[source[number]], edge) for number, edge in told if edge.kind not in SILENT])


def _is_owning(edge: Edge) -> bool:
    return edge.name.strip("[].'") in _OWNING

"""The cut of a leak, tried: the blamed references first, then the smallest cut that also takes the holders beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lifetime.heap.beneath import cycles_beneath
from lifetime.heap.graph import CutOutcome, Edge, EdgeKind, NodeKind, StorageId
from lifetime.heap.leak import Leak
from lifetime.heap.mincut import minimum_cut
from lifetime.heap.model import Cut, Leaking, Proof
from lifetime.heap.paths import Numbered
from lifetime.heap.references import blurred, holder, is_cuttable, reference
from lifetime.heap.status import inspect
from lifetime.heap.trunk import Label
from lifetime.heap.ways import Way, Ways
from lifetime.units import bytes_text, plural

Prove = Callable[[Sequence[Edge], Sequence[Edge], frozenset[StorageId]], CutOutcome]
MOST_ROUNDS = 4
"""Smallest cuts that are looked for while labels show references that cannot be cut after all."""
MOST_NAMED = 3
_VARIABLES = frozenset({EdgeKind.LOCAL.value, EdgeKind.GLOBAL.value})
_ITEMS = frozenset({EdgeKind.ITEM, EdgeKind.KEY})
_PYTHONS = frozenset({NodeKind.OBJECT, NodeKind.FUNCTION})


@dataclass(frozen=True)
class Bytes:
    """The storages: `ids` and `sizes` of the candidates by node number, the `newest` of them, and those that a root reaches."""

    ids: Mapping[int, StorageId]
    sizes: Mapping[int, int]
    newest: Collection[int]
    reached: frozenset[StorageId]


@dataclass(frozen=True)
class Tried:
    """`others` are the ways over the references that had to go with the blamed one."""

    cut: Cut
    others: tuple[Way, ...] = ()


class Trial:
    """Tries the cuts of leaks. `targets` are the nodes that roots refer to; without `prove` nothing is tried."""

    def __init__(self, graph: Numbered, targets: Sequence[int], ways: Ways, of: Bytes, label: Label, prove: Prove | None) -> None:
        self._graph = graph
        self._targets = targets
        self._ways = ways
        self._of = of
        self._label = label
        self._prove = prove
        self._tops: frozenset[int] | None = None
        self._anyway: CutOutcome | None = None

    def cut(self, leak: Leak, others: Sequence[Leak] = ()) -> Tried:
        """What cutting the blamed references does, and, where that was not enough, what else had to go: the references of
        `others`, or some that nothing else blames."""
        alike, unlike = _by_look(leak)
        reference_ = leak.chain.links[leak.blamed].reference
        also = _variables(leak) if leak.is_of_loop else self._told(unlike)
        untried = Cut(leak.blamed, reference_, leak.would_free, Proof.NOT_TRIED, None, max(len(alike), 1), also)
        if self._prove is None:
            return Tried(replace(untried, why="no proof was asked for"))
        if not leak.cuts:
            return Tried(replace(untried, why="no reference that can be cut holds it"))
        first = self._attempt(leak, leak.cuts)
        return (
            self._done(leak, untried, first)
            or (self._with_others(leak, untried, first, others) if first.why is None else None)
            or (self._with_cycles(leak, untried, first) if first.why is None and leak.is_rooted else None)
            or self._with_more(leak, untried, first)
            or (self._below_native(leak, untried, first) if first.why is None and leak.is_rooted else None)
            or Tried(self._failed(leak, untried, first))
        )

    def _attempt(self, leak: Leak, edges: Sequence[Edge]) -> CutOutcome:
        assert self._prove is not None
        return self._prove(leak.path, edges, self._named_storages(leak.expected))

    def _done(self, leak: Leak, untried: Cut, outcome: CutOutcome, more: Sequence[Edge] = ()) -> Tried | None:
        """A proof, where all died that should: what a running call still uses of the newest step may stay."""
        left = self._left(leak, outcome)
        some = leak.is_growing and len(left) < len(leak.expected) and all(s in self._of.newest for s in left)
        if outcome.why is not None or (left and not some):
            return None
        told = [f"with {plural(len(more), 'more reference')}: {self._written(more)}"] if more else []
        told += [f"with {outcome.emptied} emptied too"] if outcome.emptied else []
        if left:
            cut = [*leak.cuts, *more]
            under = self._ways.below(edge.target for edge in cut)
            users = [e for e in self._smallest(left, ()) or () if e not in cut and self._graph.number[e.source] not in under]
            told.append(f"{plural(len(left), 'storage')} of the newest step still in use{_by(self._written(users))}")
        ways = self._ways_over(more, leak)
        also = (*untried.also, *(way.text for way in ways), *([outcome.emptied] if outcome.emptied else []))
        return Tried(replace(self._proved(leak, untried, outcome, told, left), also=also), ways)

    def _with_others(self, leak: Leak, untried: Cut, first: CutOutcome, others: Sequence[Leak]) -> Tried | None:
        beside = [edge for other in others if other.is_rooted and other is not leak for edge in other.cuts]
        if not beside or self._left(leak, self._attempt(leak, (*leak.cuts, *beside))):
            return None
        left = self._left(leak, first)
        why = f"{plural(len(left), 'storage')} of {len(leak.expected)} are held by another survivor of this report too"
        return Tried(self._proved(leak, untried, first, [why], left))

    def _with_cycles(self, leak: Leak, untried: Cut, first: CutOutcome) -> Tried | None:
        """Cycles further down, that keep themselves."""
        more = cycles_beneath(self._graph, self._targets, leak.cuts, self._left(leak, first), self._of.sizes, self._label)
        return self._done(leak, untried, self._attempt(leak, (*leak.cuts, *more)), more) if more else None

    def _below_native(self, leak: Leak, untried: Cut, first: CutOutcome) -> Tried | None:
        """References of Python objects that C++ holds: it may have more reasons to than are seen."""
        graph = self._graph
        held = {graph.target[k] for k, edge in enumerate(graph.edges) if edge.kind is EdgeKind.NATIVE}
        objects = frozenset(k for k in held if graph.nodes[k].kind in _PYTHONS)
        more = self._smallest(self._left(leak, first), (), objects) if objects else None
        return self._done(leak, untried, self._attempt(leak, (*leak.cuts, *more)), more) if more else None

    def _with_more(self, leak: Leak, untried: Cut, first: CutOutcome) -> Tried | None:
        """A second holder, or a reference further up where the blamed one has no cut."""
        more = self._smallest(leak.expected, leak.cuts if first.why else ()) if leak.is_rooted else None
        if not more:
            return None
        own = {(edge.source, edge.target) for edge in leak.path}
        under = self._ways.below(edge.target for edge in leak.cuts)
        beside = [e for e in more if (e.source, e.target) not in own and self._graph.number[e.source] not in under]
        holders = [edge for edge in beside if edge.kind is not EdgeKind.LOCAL]
        for added in () if first.why else (holders, beside) if holders != beside else (beside,):
            done = self._done(leak, untried, self._attempt(leak, (*leak.cuts, *added)), added) if added else None
            if done is not None:
                return done
        outcome = self._attempt(leak, more)
        if outcome.why is not None or self._left(leak, outcome):
            return None
        told = [f"it took {plural(len(more), 'reference')}: {self._written(more)}"]
        ways = self._ways_over(beside, leak)
        also = (*untried.also, *(way.text for way in ways))
        return Tried(replace(self._proved(leak, untried, outcome, told, []), also=also), ways)

    def _ways_over(self, edges: Iterable[Edge], leak: Leak) -> tuple[Way, ...]:
        """The whole ways over the references, one for all of one look."""
        nodes, number = self._graph.nodes, self._graph.number
        looks = {(holder(nodes[number[edge.source]]), *_look(edge)): edge for edge in reversed(list(edges))}
        found = (self._ways.over(edge, leak.expected) for edge in reversed(list(looks.values())))
        return tuple(way for way in found if way is not None)

    def _failed(self, leak: Leak, untried: Cut, first: CutOutcome) -> Cut:
        if first.why is not None:
            return replace(untried, why=first.why)
        left = len(self._left(leak, first))
        why = f"{plural(left, 'storage')} of {len(leak.expected)} did not die: {_other(leak)}"
        also = untried.also if leak.is_judged else tuple(way.text for way in self._ways_over(self._beside(leak), leak))
        return replace(untried, frees_bytes=self._freed(leak, first)[0], proof=Proof.DISPROVED, why=why, also=also)

    def _beside(self, leak: Leak) -> list[Edge]:
        """Every other reference to the tensor itself, labelled."""
        graph = self._graph
        above = graph.number[leak.path[-1].source] if leak.path else leak.largest
        own = {(edge.source, edge.target) for edge in leak.path}
        others = [graph.edges[k] for k in graph.entering(above)]
        return list(self._label([edge for edge in others if (edge.source, edge.target) not in own]))

    def _proved(self, leak: Leak, untried: Cut, outcome: CutOutcome, told: Sequence[str], left: Collection[int]) -> Cut:
        """The numbers said so that they add up to those of the leak."""
        freed, strange = self._freed(leak, outcome)
        expected = set(leak.expected)
        aside = sum(self._of.sizes[s] for s in leak.storages if s not in expected and self._of.ids[s] not in outcome.died)
        told = [*told, *([f"{bytes_text(strange)} of it not of this leak"] if strange else [])]
        told += [f"{bytes_text(aside)} of the leak hangs on its holder another way"] if aside else []
        return replace(untried, frees_bytes=freed, proof=Proof.PROVED, why="; ".join(told) or None)

    def _freed(self, leak: Leak, outcome: CutOutcome) -> tuple[int, int]:
        """The bytes that went because of the cut, and how many of them are none of the leak's. Garbage would have gone anyway."""
        own = {self._of.ids[s]: self._of.sizes[s] for s in leak.storages}
        freed = outcome.frees_bytes
        if leak.is_rooted and not outcome.died <= self._of.reached:
            anyway = self._garbage(leak)
            if anyway.died <= outcome.died and not anyway.died & own.keys():
                freed -= anyway.frees_bytes
        return freed, freed - sum(own[key] for key in outcome.died & own.keys())

    def _garbage(self, leak: Leak) -> CutOutcome:
        """What a collection frees without any cut."""
        if self._anyway is None:
            self._anyway = self._attempt(leak, ())
        return self._anyway

    def _left(self, leak: Leak, outcome: CutOutcome) -> list[int]:
        return [s for s in leak.expected if self._of.ids[s] not in outcome.died]

    def _told(self, edges: Sequence[Edge]) -> tuple[str, ...]:
        nodes, number = self._graph.nodes, self._graph.number
        return tuple(sorted({f"{holder(nodes[number[edge.source]])}{reference(edge)}" for edge in edges}))

    def _named_storages(self, storages: Iterable[int]) -> frozenset[StorageId]:
        return frozenset(self._of.ids[s] for s in storages)

    def _smallest(
        self, storages: Sequence[int], hard: Sequence[Edge], beside: frozenset[int] = frozenset()
    ) -> tuple[Edge, ...] | None:
        """The smallest cut above the storages, labelled, without the `hard` references; `beside` what roots hold other nodes may
        be held too."""
        graph = self._graph
        stuck = {(edge.source, edge.target) for edge in hard}

        def can_cut(number: int) -> bool:
            edge = graph.edges[number]
            return is_cuttable(edge) and graph.target[number] not in self._alive() and (edge.source, edge.target) not in stuck

        for _ in range(MOST_ROUNDS):
            found = minimum_cut(graph, storages, self._alive() | beside, can_cut)
            if found is None:
                return None
            edges = tuple(self._label([graph.edges[number] for number in found]))
            fixed = {(edge.source, edge.target) for edge in edges if not is_cuttable(edge)}
            if not fixed:
                return edges
            stuck |= fixed
        return None

    def _alive(self) -> frozenset[int]:
        """The nodes that nobody should cut off: what roots refer to, and what is alive on purpose."""
        if self._tops is None:
            purpose = []
            looks: dict[tuple[str, str, str], bool] = {}
            for k, node in enumerate(self._graph.nodes):
                look = node.kind.value, node.type_name, node.base
                if look not in looks:
                    looks[look] = inspect(node)[0] is Leaking.NO
                if looks[look]:
                    purpose.append(k)
            self._tops = frozenset((*self._targets, *purpose))
        return self._tops

    def _written(self, edges: Sequence[Edge]) -> str:
        nodes, number = self._graph.nodes, self._graph.number
        told = sorted({f"{holder(nodes[number[edge.source]])}{reference(edge)}" for edge in edges})
        return ", ".join(told[:MOST_NAMED]) + (f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else "")


def _by_look(leak: Leak) -> tuple[list[Edge], list[Edge]]:
    """The references to be cut that are of the blamed one's kind, and the others: an item of a container is like any other item,
    an attribute or a variable like its namesakes."""
    path = set(leak.path)
    shown = next((edge for edge in leak.cuts if edge in path), leak.cuts[0] if leak.cuts else None)
    alike = [edge for edge in leak.cuts if shown is not None and _look(edge) == _look(shown)]
    return alike, [edge for edge in leak.cuts if edge not in alike]


def _variables(leak: Leak) -> tuple[str, ...]:
    """The variables of the loop that hold some of it, without the one that is shown."""
    names = (f"{function}{name}" if name.startswith(".") else function for function, _, name in leak.tokens)
    return tuple(name for name in names if name != leak.chain.root.name)


def _look(edge: Edge) -> tuple[EdgeKind, str]:
    return edge.kind, "" if edge.kind in _ITEMS else blurred(reference(edge))


def _other(leak: Leak) -> str:
    is_variable = not leak.is_growing and leak.chain.links[leak.blamed].kind in _VARIABLES
    return "a call under way uses them" if is_variable else "another holder has them too"


def _by(names: str) -> str:
    return f" by {names}" if names else ""

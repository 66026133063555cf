"""The cut of a leak, tried: the blamed references first, then the smallest cut that also takes the holders beside them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lifetime.heap.graph import CutOutcome, Edge, EdgeKind, StorageId
from lifetime.heap.leak import Leak
from lifetime.heap.mincut import minimum_cut
from lifetime.heap.model import Cut, Leaking, Proof
from lifetime.heap.paths import Numbered
from lifetime.heap.references import holder, is_cuttable, reference
from lifetime.heap.status import inspect
from lifetime.heap.trunk import Label
from lifetime.units import plural

Prove = Callable[[Sequence[Edge], Sequence[Edge], frozenset[StorageId]], CutOutcome]
MOST_ROUNDS = 4
"""Smallest cuts that are looked for while labels show references that cannot be cut after all."""
MOST_NAMED = 3
_VARIABLES = frozenset({EdgeKind.LOCAL.value, EdgeKind.GLOBAL.value})


class Trial:
    """Tries the cuts of leaks. `targets` are the nodes that roots refer to, `newest` the storages of the last step; without
    `prove` nothing is tried."""

    def __init__(
        self,
        graph: Numbered,
        targets: Sequence[int],
        ids: Mapping[int, StorageId],
        newest: Collection[int],
        label: Label,
        prove: Prove | None,
    ) -> None:
        self._graph = graph
        self._targets = targets
        self._ids = ids
        self._newest = newest
        self._label = label
        self._prove = prove
        self._tops: frozenset[int] | None = None

    def cut(self, leak: Leak, others: Sequence[Leak] = ()) -> Cut:
        """What cutting the blamed references does, and, where that was not enough, what else had to go: the references of
        `others`, or some that nothing else blames."""
        untried = Cut(leak.blamed, leak.chain.links[leak.blamed].reference, leak.would_free, Proof.NOT_TRIED)
        if self._prove is None:
            return replace(untried, why="no proof was asked for")
        if not leak.cuts:
            return replace(untried, why="no reference that can be cut holds it")
        first = self._prove(leak.path, leak.cuts, self._named_storages(leak.expected))
        left = [s for s in leak.expected if self._ids[s] not in first.died]
        if first.why is None and not left:
            return replace(untried, frees_bytes=first.frees_bytes, proof=Proof.PROVED)
        if first.why is None and leak.is_growing and all(s in self._newest for s in left) and len(left) < len(leak.expected):
            users = [edge for edge in self._smallest(left, ()) or () if edge not in leak.cuts]
            why = f"{plural(len(left), 'storage')} of the newest step still in use{_by(self._written(users))}"
            return replace(untried, frees_bytes=first.frees_bytes, proof=Proof.PROVED, why=why)
        beside = [edge for other in others if other.is_rooted and other is not leak for edge in other.cuts]
        if first.why is None and beside and self._kills((*leak.cuts, *beside), leak):
            why = f"{plural(len(left), 'storage')} of {len(leak.expected)} are held by another survivor of this report too"
            return replace(untried, frees_bytes=first.frees_bytes, proof=Proof.PROVED, why=why)
        return self._second(leak, untried, first, len(left))

    def _kills(self, edges: Sequence[Edge], leak: Leak) -> bool:
        assert self._prove is not None
        expected = self._named_storages(leak.expected)
        outcome = self._prove(leak.path, edges, expected)
        return outcome.why is None and expected <= outcome.died

    def _second(self, leak: Leak, untried: Cut, first: CutOutcome, left: int) -> Cut:
        """A second holder, or a reference further up where the blamed one has no cut."""
        assert self._prove is not None
        more = self._smallest(leak.expected, leak.cuts if first.why else ()) if leak.is_rooted else None
        if more:
            expected = self._named_storages(leak.expected)
            outcome = self._prove(leak.path, more, expected)
            if outcome.why is None and expected <= outcome.died:
                why = f"it took {plural(len(more), 'reference')}: {self._written(more)}"
                return replace(untried, frees_bytes=outcome.frees_bytes, proof=Proof.PROVED, why=why)
        if first.why is not None:
            return replace(untried, why=first.why)
        why = f"{plural(left, 'storage')} of {len(leak.expected)} did not die: {_other(leak)}"
        return replace(untried, frees_bytes=first.frees_bytes, proof=Proof.DISPROVED, why=why)

    def _named_storages(self, storages: Iterable[int]) -> frozenset[StorageId]:
        return frozenset(self._ids[s] for s in storages)

    def _smallest(self, storages: Sequence[int], hard: Sequence[Edge]) -> tuple[Edge, ...] | None:
        """The smallest cut above the storages, labelled, without the `hard` references."""
        graph = self._graph
        stuck = {(edge.source, edge.target) for edge in hard}

        def can_cut(number: int) -> bool:
            edge = graph.edges[number]
            return is_cuttable(edge) and graph.target[number] not in self._alive() and (edge.source, edge.target) not in stuck

        for _ in range(MOST_ROUNDS):
            found = minimum_cut(graph, storages, self._alive(), can_cut)
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


def _other(leak: Leak) -> str:
    is_variable = not leak.is_growing and leak.chain.links[leak.blamed].kind in _VARIABLES
    return "a call under way uses them" if is_variable else "another holder has them too"


def _by(names: str) -> str:
    return f" by {names}" if names else ""

"""One look at the heap, in a forked child: search, snapshot, judgement, proof. The program pauses for the fork alone.

Live objects exist here only, and only in the child; what comes back is text and numbers.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import autograd, differential, frames, in_place, memory, scan, threads, upcoming
from lifetime.heap.cut import Hop, Reference
from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import Child, ChildError, fork
from lifetime.heap.frames import Running
from lifetime.heap.garbage import by_graph, collect
from lifetime.heap.graph import CutOutcome, Edge, EdgeKind, History, ObjectId, StorageId, Watched
from lifetime.heap.judge import Judgement, judge
from lifetime.heap.model import Gap, Owners, Survivor
from lifetime.heap.ownership import reconcile
from lifetime.heap.prove import Count, Counted, Prover
from lifetime.heap.search import Search
from lifetime.heap.snapshot import Labels, snapshot
from lifetime.heap.survey import survey, unread
from lifetime.heap.threads import Handled


@dataclass(frozen=True)
class Look:
    """What one look showed. `paused_s` is how long the program stood still, `seconds` how long the child took."""

    survivors: tuple[Survivor, ...] = ()
    known: tuple[Survivor, ...] = ()
    gaps: tuple[Gap, ...] = ()
    members: Mapping[str, tuple[StorageId, ...]] = field(default_factory=dict)
    paused_s: float = 0.0
    seconds: float = 0.0


class Pending:
    """A look that a child is still busy with."""

    def __init__(self, child: Child[Look] | None, paused_s: float, done: Look | None = None) -> None:
        self._child = child
        self._done = done
        self.paused_s = paused_s

    def ready(self) -> bool:
        """`wait` would not wait."""
        return self._child is None or self._child.ready()

    def wait(self) -> Look:
        """What the child saw; a child that failed is a gap."""
        if self._done is None and self._child is not None:
            try:
                self._done = self._child.wait()
            except ChildError as error:
                self._done = Look(gaps=(Gap("capture", error.message),))
        return self._done or Look()

    def cancel(self) -> None:
        """End the child; its answer is not wanted any more."""
        if self._child is not None and self._done is None:
            self._child.end()
            self._done = Look()


def look(
    watched: Mapping[StorageId, Watched], history: History, *, prove: bool, deadline_s: float, everything: bool = False
) -> Pending:
    """Fork a child that finds out who holds the storages in `watched`, and go on."""
    start = time.perf_counter()
    if not any(one.birth_step >= history.first for one in watched.values()):
        return Pending(None, 0.0, Look(gaps=tuple(_unwatched())))
    stacks = frames.running()
    with threads.held() as handled:
        try:
            child = fork(lambda: _look(watched, history, stacks, handled, prove, deadline_s, everything), deadline_s=deadline_s)
        except ChildError as error:
            look = _without_fork(watched, history, stacks, handled, everything, error.message)
            return Pending(None, time.perf_counter() - start, look)
    return Pending(child, time.perf_counter() - start)


def _without_fork(
    watched: Mapping[StorageId, Watched],
    history: History,
    stacks: tuple[Running, ...],
    handled: tuple[Handled, ...],
    everything: bool,
    why: str,
) -> Look:
    """The look in the program itself; where that fails too it is a gap."""
    start = time.perf_counter()
    gaps = (Gap("proof and owners", f"looked without a fork, nothing was cut or counted: {why}"), *_unseen())
    try:
        judged = in_place.look(watched, history, stacks, handled, why, everything)
    except Exception as error:
        return Look(gaps=(*gaps, Gap("capture", f"{type(error).__name__} in the search: {error}")))
    return Look(judged.survivors, judged.known, (*gaps, *judged.gaps), judged.members, 0.0, time.perf_counter() - start)


def _look(
    watched: Mapping[StorageId, Watched],
    history: History,
    stacks: tuple[Running, ...],
    handled: tuple[Handled, ...],
    prove: bool,
    deadline_s: float,
    everything: bool,
) -> Look:
    """The whole life of the child, in its order: the clean copies are forked before anything is touched."""
    start = time.perf_counter()
    threads.let_go()
    sizes = {key: one.nbytes for key, one in watched.items()}
    deaths = Deaths(_weak(watched), sizes)
    prover = Prover(deaths, deadline_s)
    garbage = collect(deaths, deadline_s)
    watched = upcoming.without(watched, history, stacks)
    gaps = _unseen()
    scan.settle()
    memory.forget()
    searched = survey(watched, history, stacks, handled)
    gaps += unread(searched)
    dead = _garbage(garbage, gaps)
    _native_owners(searched, watched, dead or frozenset(), history, prover)
    graph = snapshot(searched, watched, dead or frozenset(), gaps)
    if dead is None:
        graph = replace(graph, garbage=by_graph(searched, graph))
    labels = Labels(searched.objects)
    proof = Proof(searched, prover, sizes)
    judged: Judgement = judge(
        graph,
        label=labels,
        prove=proof.prove if prove else None,
        owners=proof.owners,
        history=history,
        everything=everything,
    )
    prover.end()
    return Look(judged.survivors, judged.known, judged.gaps, judged.members, 0.0, time.perf_counter() - start)


def _unseen() -> list[Gap]:
    """What cannot be seen here, before anything is looked at."""
    hidden = frames.what_is_hidden()
    return [*([Gap("running frames", hidden)] if hidden else []), *_unwatched()]


def _unwatched() -> list[Gap]:
    """What the watch may have missed: to be told even where nothing survives."""
    hidden = autograd.what_is_hidden()
    gaps = [Gap("saved tensors", hidden)] if hidden else []
    if gc.get_freeze_count():
        gaps.append(Gap("gc.freeze", "tensors that the program froze are hidden from the watch; as holders they are seen"))
    return gaps


def _weak(watched: Mapping[StorageId, Watched]) -> dict[StorageId, Any]:
    """A C++ weak reference of our own to each storage: the program's may go with it."""
    found = {}
    for key in watched:
        storage = torch.UntypedStorage._new_with_weak_ptr(key)
        if storage is not None:
            found[key] = StorageWeakRef(storage)
    return found


def _native_owners(
    search: Search, watched: Mapping[StorageId, Watched], dead: frozenset[StorageId], history: History, prover: Prover
) -> None:
    """Roots in C++ for storages that nothing in Python leads to: asked only where there are such."""
    lost = search.unrooted(ObjectId(k) for k, one in watched.items() if one.birth_step >= history.first and k not in dead)
    for name in differential.owners() if lost else ():
        freed = {ObjectId(key) for key in prover.release(name)} & lost
        if freed:
            search.add_native_owner(name, freed)


def _garbage(child: Child[frozenset[StorageId]], gaps: list[Gap]) -> frozenset[StorageId] | None:
    """What a collection frees, or None with a gap."""
    try:
        return child.wait()
    except ChildError as error:
        gaps.append(Gap("garbage", f"what a collection would free was read off the graph, not tried: {error.message}"))
        return None


class Proof:
    """Cuts and counts in clean copies, for the judgement."""

    def __init__(self, search: Search, prover: Prover, sizes: Mapping[StorageId, int]) -> None:
        self._sizes = sizes
        self._search = search
        self._prover = prover
        self._into = search.into
        self._freed: frozenset[StorageId] = frozenset()
        self._young = scan.made_among(set(search.objects))

    def prove(self, path: Sequence[Edge], cuts: Sequence[Edge], storages: frozenset[StorageId]) -> CutOutcome:
        owner = next((self._search.native_owners[e.source] for e in cuts if e.source in self._search.native_owners), None)
        if owner is not None:
            died = self._prover.release(owner)
            self._freed |= died
            return CutOutcome(died, self._weigh(died))
        references = [
            Reference(*self._place(edge.source), Hop(edge.kind, edge.name), edge.target, max(edge.count, 1)) for edge in cuts
        ]
        outcome = self._prover.attempt(references, collect=False)
        is_rooted = bool(path) and path[0].source in self._search.roots
        if outcome.why is None and is_rooted and not storages <= outcome.died:
            outcome = self._prover.attempt(references, collect=True)
            outcome = outcome if storages <= outcome.died else self._with_native_owner(references, storages, outcome)
        self._freed |= outcome.died
        return outcome

    def _with_native_owner(self, references: Sequence[Reference], storages: frozenset[StorageId], first: CutOutcome) -> CutOutcome:
        """The same cut with an owner in C++ emptied too, where that is the other holder; else what it did by itself."""
        for owner in differential.unlisted() if references and first.why is None else ():
            outcome = self._prover.attempt(references, collect=True, release=owner)
            if outcome.why is None and storages <= outcome.died:
                self._search.add_native_owner(owner, map(ObjectId, storages - first.died))
                return replace(outcome, emptied=owner)
        return first

    def _weigh(self, storages: frozenset[StorageId]) -> int:
        return sum(self._sizes.get(key, 0) for key in storages)

    def owners(self, storages: Sequence[StorageId]) -> dict[StorageId, tuple[Owners | None, tuple[Gap, ...]]]:
        """Owners of each storage, named and counted."""
        holders = {key: self._holders(key) for key in storages}
        every = list(dict.fromkeys(t for found in holders.values() for t in found))
        counts = self._prover.count([Count(*self._place(t), self._is_new(t)) for t in every])
        counted: dict[ObjectId, Counted | str] = dict(zip(every, counts, strict=True))
        return {
            key: reconcile(found, self._into, counted, self._into[ObjectId(key)], key in self._freed)
            for key, found in holders.items()
        }

    def _holders(self, storage: StorageId) -> list[ObjectId]:
        """The tensors of a storage, and its bare storage object where that is held by itself."""
        return [edge.source for edge in self._into[ObjectId(storage)] if edge.kind is EdgeKind.STORAGE]

    def _is_new(self, key: ObjectId) -> bool:
        return key in self._young

    def _place(self, key: ObjectId) -> tuple[ObjectId, tuple[Hop, ...]]:
        """An object that a clean copy has, and the way from there to `key`."""
        hops: list[Hop] = []
        while self._is_new(key) and key in self._search.came_from:
            edge = self._search.came_from[key]
            hops.append(Hop(edge.kind, edge.name))
            key = edge.source
        return key, tuple(reversed(hops))

"""The judgement: from a snapshot to the leaks in it, each with its chain, its blamed reference, its proof and its owners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from lifetime.heap.blame import Blame, growing
from lifetime.heap.chosen import Chosen
from lifetime.heap.dominators import Retained
from lifetime.heap.everyone import everyone
from lifetime.heap.graph import History, ObjectId, Snapshot, StorageId, Watched
from lifetime.heap.growth import FEWEST_BOUNDARIES, grows
from lifetime.heap.hint import hint
from lifetime.heap.known import known
from lifetime.heap.leak import Leak, from_loops, from_root
from lifetime.heap.linger import lingering, one_each
from lifetime.heap.loops import Loop, loops
from lifetime.heap.model import Gap, Owners, RootKind, Survivor, TensorFacts, Verdict
from lifetime.heap.paths import Numbered, search
from lifetime.heap.priority import starts, tolls
from lifetime.heap.proof import Bytes, Prove, Trial, Tried
from lifetime.heap.references import Token
from lifetime.heap.trunk import Label
from lifetime.heap.ways import Ways
from lifetime.units import bytes_text

OwnersOf = Callable[[Sequence[StorageId]], Mapping[StorageId, tuple["Owners | None", tuple[Gap, ...]]]]


@dataclass(frozen=True)
class Judgement:
    """Survivors in the report's order; `known` are those that the catalogue of library holders knows.

    `members` are the storages of each survivor, by its fingerprint: what joins them with sites.
    """

    survivors: tuple[Survivor, ...]
    known: tuple[Survivor, ...]
    gaps: tuple[Gap, ...]
    members: Mapping[str, tuple[StorageId, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidates:
    """The storages to be judged, by node number: their step of birth, their bytes, their name to the tracer, and all that
    the watch knows."""

    born: dict[int, int]
    sizes: dict[int, int]
    ids: dict[int, StorageId]
    watched: dict[int, Watched]


def judge(
    snapshot: Snapshot,
    *,
    label: Label,
    prove: Prove | None,
    owners: OwnersOf,
    history: History,
    everything: bool = False,
) -> Judgement:
    """Every leak of the snapshot, once; every holder if `everything`. `label` is called for the edges of chosen chains only."""
    graph = Numbered(snapshot)
    of = candidates(graph, snapshot, history)
    roots = [root for root in snapshot.roots if root.target in graph.number]
    targets = [graph.number[root.target] for root in roots]
    tree = search(graph, starts(roots, graph, targets), targets, tolls(graph, of.born))
    reached = [s for s in of.born if tree.reached(s)]
    born = {s: of.born[s] for s in reached}
    chosen = Chosen(graph, tree, roots, reached, label, born)
    retained = Retained(graph, targets, of.sizes)
    if everything:
        found = everyone(chosen, reached)
    else:
        grown, rest = growing(chosen, born, of.sizes, history)
        found = one_each(chosen, grown, lingering(chosen, rest, of.born, history, retained))
    leaks = [
        from_root(chosen, _collectable(one, of, snapshot.garbage), of.born, of.sizes, retained, not everything) for one in found
    ]
    unreached = [s for s in of.born if not tree.reached(s)]
    leaks += unrooted(graph, loops(graph, unreached, of.sizes, label), of, snapshot.garbage, history)
    newest = {s for s, step in of.born.items() if step == history.last}
    storages = Bytes(of.ids, of.sizes, newest, frozenset(of.ids[s] for s in reached))
    trial = Trial(graph, targets, Ways(graph, tree, roots, label), storages, label, prove)
    survivors = [survivor(leak, of, trial.cut(leak, leaks), history) for leak in leaks]
    members = {leak.fingerprint: tuple(of.ids[s] for s in leak.storages) for leak in leaks}
    return Judgement(*_finished(leaks, survivors, owners, of), _gaps(graph, snapshot, history, label), members)


def _collectable(blame: Blame, of: Candidates, garbage: frozenset[StorageId]) -> Blame:
    """What a root reaches and a collection frees all the same: values of a weak-key dictionary whose keys are garbage."""
    if blame.verdict is Verdict.GROWING and all(of.ids[s] in garbage for s in blame.storages):
        return replace(blame, verdict=Verdict.UNTIL_GC)
    return blame


def candidates(graph: Numbered, snapshot: Snapshot, history: History) -> Candidates:
    """The watched storages that were born after warm-up."""
    born, sizes, ids, known = {}, {}, {}, {}
    for watched in snapshot.watched.values():
        node = graph.number.get(ObjectId(watched.storage))
        if node is not None and history.first <= watched.birth_step <= history.last:
            born[node], sizes[node], ids[node] = watched.birth_step, watched.nbytes, watched.storage
            known[node] = watched
    return Candidates(born, sizes, ids, known)


def unrooted(graph: Numbered, found: Sequence[Loop], of: Candidates, garbage: frozenset[StorageId], history: History) -> list[Leak]:
    """The leaks that no root reaches: Python's cycles, C++'s cycles, and what C++ alone owns."""
    groups: dict[tuple[RootKind, tuple[Token, ...]], list[Loop]] = {}
    for loop in found:
        in_python = any(of.ids[s] in garbage for s in loop.storages)
        kind = RootKind.REFERENCE_CYCLE if in_python else RootKind.NATIVE_CYCLE if loop.turn else RootKind.NATIVE
        groups.setdefault((kind, loop.tokens), []).append(loop)
    leaks = []
    for (kind, _), group in groups.items():
        verdict = _verdict(
            kind,
            {of.born[s] for loop in group for s in loop.storages},
            {of.sizes[s] for loop in group for s in loop.storages},
            history,
        )
        if verdict is not None:
            leaks.append(from_loops(graph, kind, verdict, group, of.born, of.sizes))
    return leaks


def _verdict(kind: RootKind, births: set[int], sizes: set[int], history: History) -> Verdict | None:
    """What unrooted storages of these births are. A cycle like them that was already collected shows that they come back."""
    in_python = kind is RootKind.REFERENCE_CYCLE
    again = in_python and any(d.collected and d.nbytes in sizes for d in history.deaths)
    if again or grows(births, history):
        return Verdict.UNTIL_GC if in_python else Verdict.GROWING
    return Verdict.LINGERING if history.last in births else None


def survivor(leak: Leak, of: Candidates, tried: Tried, history: History) -> Survivor:
    count = len(leak.storages)
    total = sum(of.sizes[s] for s in leak.storages)
    each = _per_step(leak, of)
    return Survivor(
        fingerprint=leak.fingerprint,
        verdict=leak.verdict,
        count=count,
        count_per_step=round(each[0], 2),
        bytes=total,
        bytes_per_step=round(each[1]),
        tensor=_facts(leak, of),
        chain=leak.chain,
        known=known(leak.holders, leak.path),
        owners=None,
        cut=tried.cut,
        hint=hint(leak, tried.others),
        gaps=_too_few(leak, of, history),
        judged=leak.is_judged,
    )


def _per_step(leak: Leak, of: Candidates) -> tuple[float, float]:
    """Storages and bytes a step: those born after the first birth over the steps since, or all where there is one birth only. The
    newest step does not count where less than usual was born in it: the boundary came before its end."""
    sizes: dict[int, list[int]] = {}
    for storage in leak.storages:
        sizes.setdefault(of.born[storage], []).append(of.sizes[storage])
    first, *later = sorted(sizes)
    if len(later) > 1 and len(sizes[later[-1]]) < median(map(len, sizes.values())):
        later.pop()
    turns = later[-1] - first if later else 1
    told = [size for step in later or [first] for size in sizes[step]]
    return len(told) / turns, sum(told) / turns


def _too_few(leak: Leak, of: Candidates, history: History) -> tuple[Gap, ...]:
    """Where the run was so short that what is called lingering may well grow."""
    seen = history.last + 1
    births = {of.born[s] for s in leak.storages}
    is_open = leak.verdict is Verdict.LINGERING and seen < FEWEST_BOUNDARIES and (len(births) > 1 or history.first == history.last)
    if not is_open or leak.is_of_loop or not leak.is_judged:
        return ()
    return (Gap("verdict", f"too few steps to tell growing from lingering ({seen} seen, {FEWEST_BOUNDARIES} needed)"),)


def _facts(leak: Leak, of: Candidates) -> TensorFacts:
    size, watched = of.sizes[leak.largest], of.watched[leak.largest]
    facts = leak.tensor.tensor or TensorFacts("storage", (size,), "uint8", "cpu", size)
    return replace(facts, created_at=watched.created_at, address=watched.address)


def _finished(
    leaks: Sequence[Leak], survivors: Sequence[Survivor], owners: OwnersOf, of: Candidates
) -> tuple[tuple[Survivor, ...], tuple[Survivor, ...]]:
    """Survivors with their owners, in the order of the report; apart from them those that the catalogue knows."""
    answers = owners([of.ids[leak.largest] for leak in leaks])
    done = []
    for leak, one in zip(leaks, survivors, strict=True):
        found, gaps = answers.get(of.ids[leak.largest], (None, (Gap(leak.fingerprint, "its owners were not counted"),)))
        done.append(replace(one, owners=found, gaps=(*one.gaps, *gaps)))
    done.sort(key=lambda s: (list(Verdict).index(s.verdict), -s.bytes, s.fingerprint))
    return tuple(s for s in done if s.known is None), tuple(s for s in done if s.known is not None)


def _gaps(graph: Numbered, snapshot: Snapshot, history: History, label: Label) -> tuple[Gap, ...]:
    """What could not be seen, and garbage of warm-up that a known library left behind: it is nobody's leak, and gc takes it."""
    old = {
        graph.number[ObjectId(key)]: one.nbytes
        for key, one in snapshot.watched.items()
        if one.birth_step < history.first and key in snapshot.garbage and ObjectId(key) in graph.number
    }
    told = []
    for loop in loops(graph, list(old), old, label):
        entry = known([graph.nodes[graph.source[e]] for e in loop.path], loop.edges)
        if entry is not None:
            size = bytes_text(sum(old[s] for s in loop.storages))
            told.append(Gap(entry.reference, f"{size} of warm-up wait for gc: {entry.description}"))
    return (*snapshot.gaps, *told)

"""The cut of a leak, tried: the blamed references first, then every other way to the storages that did not die."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lifetime.heap.graph import CutOutcome, Edge, StorageId
from lifetime.heap.leak import Leak
from lifetime.heap.model import Cut, Proof
from lifetime.units import plural

Prove = Callable[[Sequence[Edge], Sequence[Edge], frozenset[StorageId]], CutOutcome]


def proved(leak: Leak, prove: Prove | None, ids: Mapping[int, StorageId], sizes: Mapping[int, int]) -> Cut:
    """What cutting the blamed references does, tried in a fork where `prove` can."""
    reference = leak.chain.links[leak.blamed].reference if leak.chain.links else ""
    guess = sum(sizes[s] for s in leak.expected)
    if prove is None or not leak.cuts:
        why = "proof was switched off" if prove is None else "no Python reference holds it"
        return Cut(leak.blamed, reference, guess, Proof.NOT_TRIED, why)
    expected = frozenset(ids[s] for s in leak.expected)
    outcome = prove(leak.path, leak.cuts, expected)
    if outcome.why is not None:
        return Cut(leak.blamed, reference, guess, Proof.NOT_TRIED, outcome.why)
    if expected <= outcome.died:
        return Cut(leak.blamed, reference, outcome.frees_bytes, Proof.PROVED)
    left = len(expected - outcome.died)
    why = f"{plural(left, 'storage')} of {len(expected)} did not die: somebody else holds them too"
    return Cut(leak.blamed, reference, outcome.frees_bytes, Proof.DISPROVED, why)

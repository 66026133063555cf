"""Which storages only a Python cycle holds: what a collection frees, asked in a child so that the program keeps them, or read off
the graph where no child can say."""

from __future__ import annotations

import gc
import sys

import torch

from lifetime.heap import cycles, fence, peek
from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import Child, fork
from lifetime.heap.graph import EdgeKind, ObjectId, Snapshot, StorageId
from lifetime.heap.paths import Numbered
from lifetime.heap.search import Search

_OURS = 4
"""References that are the search's: its list of everything, its table of objects, a variable and the argument of the count."""
SHARE = 2
"""The collection may take this part of the time that the search has: where it hangs the search goes on without it."""


def collect(deaths: Deaths, deadline_s: float) -> Child[frozenset[StorageId]]:
    """A child that collects everything, also what the program froze, and answers with the storages that died of it.

    Raises:
        ChildError: this process cannot fork.
    """

    def work() -> frozenset[StorageId]:
        deaths.guard()
        with fence.patience(deadline_s / SHARE / 2):
            fence.collect()
        return deaths.since_guard()

    return fork(work, deadline_s=deadline_s / SHARE, sealed=True)


def by_graph(search: Search, graph: Snapshot) -> frozenset[StorageId]:
    """The storages that a collection would free, as far as the graph shows: what hangs below cycles that gc sees whole."""
    numbered = Numbered(graph)
    lost = search.unrooted(key for key in map(ObjectId, graph.watched) if key in numbered.number)
    found = cycles.below_whole(numbered, [numbered.number[key] for key in lost], lambda node: _is_seen(search, numbered.ids[node]))
    return frozenset(StorageId(numbered.ids[node]) for node in found)


def _is_seen(search: Search, key: ObjectId) -> bool:
    """Whether gc sees every reference to the object: none is C++'s. Instances refer to their classes, which no edge tells."""
    thing = search.objects.get(key)
    if thing is None or peek.is_class(thing):
        return thing is not None
    if peek.is_tensor(thing) and torch._C.TensorBase._use_count(thing) > 1:  # type: ignore[attr-defined]
        return False
    internal = {edge.source: edge.count for edge in search.into[key] if edge.kind is EdgeKind.INTERNAL}
    others = [search.objects.get(source) for source in {edge.source for edge in search.into[key]} - internal.keys()]
    seen = sum(internal.values()) + sum(id(found) == key for holder in others for found in gc.get_referents(holder))
    return sys.getrefcount(thing) - _OURS <= seen

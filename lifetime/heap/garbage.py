"""Which storages only a Python cycle holds: what a collection frees, asked in a child so that the program keeps them."""

from __future__ import annotations

from lifetime.heap import fence
from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import Child, fork
from lifetime.heap.graph import StorageId

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

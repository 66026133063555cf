"""Which storages only a Python cycle holds: what a collection frees, asked in a child so that the program keeps them."""

from __future__ import annotations

import gc

from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import Child, fork
from lifetime.heap.graph import StorageId


def collect(deaths: Deaths, deadline_s: float) -> Child[frozenset[StorageId]]:
    """A child that collects everything, also what the program froze, and answers with the storages that died of it.

    Raises:
        ChildError: this process cannot fork.
    """

    def work() -> frozenset[StorageId]:
        deaths.guard()
        gc.unfreeze()
        gc.collect()
        return deaths.since_guard()

    return fork(work, deadline_s=deadline_s, sealed=True)

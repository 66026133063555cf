"""A look without a fork: the same search and judgement in the program itself, which stands still for all of it.

Note [stricter rules]: nothing is cut, counted, collected, unpacked or registered, and nothing that the search saw is kept. So
there is no proof, no count of owners, and which cycle gc would free is read off the graph. Python's own record of an object's
attributes may be made earlier than the program would have (`__dict__` of CPython 3.11 and 3.12).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch

from lifetime.heap import describe, garbage, memory, upcoming
from lifetime.heap.frames import Running
from lifetime.heap.graph import CutOutcome, History, StorageId, Watched
from lifetime.heap.judge import Judgement, judge
from lifetime.heap.model import Gap, Owners
from lifetime.heap.snapshot import Labels, snapshot
from lifetime.heap.survey import survey, unread
from lifetime.heap.threads import Handled

UNDIVIDED_S = 3600.0
"""No other thread gets its turn by time alone while the heap is read."""


def look(
    watched: Mapping[StorageId, Watched],
    history: History,
    stacks: tuple[Running, ...],
    handled: tuple[Handled, ...],
    why: str,
    everything: bool,
) -> Judgement:
    """Who holds the storages in `watched`; `why` there is no fork is told where something had to be left out."""
    watched = upcoming.without(watched, history, stacks)
    with _alone():
        search = survey(watched, history, stacks, handled, hooks=False)
        try:
            graph = snapshot(search, watched, frozenset(), unread(search))
            graph = replace(graph, garbage=garbage.by_graph(search, graph))
            return judge(
                graph,
                label=Labels(search.objects),
                prove=lambda path, cuts, storages: CutOutcome(frozenset(), 0, why),
                owners=lambda storages: _uncounted(storages, why),
                history=history,
                everything=everything,
            )
        finally:
            search.forget()
            describe.forget()
            memory.forget()


@contextmanager
def _alone() -> Iterator[None]:
    """Without collections, other threads' turns, and code that tensor subclasses bring along."""
    collecting, interval = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(UNDIVIDED_S)
    try:
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            yield
    finally:
        sys.setswitchinterval(interval)
        if collecting:
            gc.enable()


def _uncounted(storages: Sequence[StorageId], why: str) -> dict[StorageId, tuple[Owners | None, tuple[Gap, ...]]]:
    return {key: (None, (Gap("owners", f"not counted: {why}"),)) for key in storages}

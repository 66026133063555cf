"""Files spread over processes, where there is enough to do to pay for starting them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lifetime.linter.job import Job, Outcome, Task, run
from lifetime.linter.result import Problem

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

WORTH_BYTES = 300_000
"""About a second of work for the rules; a pool starts in a twentieth of one."""


def spread(tasks: Sequence[Task], job: Job, jobs: int) -> Iterator[Outcome]:
    """The outcome of every task, in no particular order. `jobs` 0 means as many as the machine has processors."""
    workers = min(jobs or processors(), len(tasks))
    if workers <= 1 or sum(len(task.data) for task in tasks) < WORTH_BYTES:
        yield from (run(task, job) for task in tasks)
    else:
        yield from _parallel(tasks, job, workers)


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parallel(tasks: Sequence[Task], job: Job, workers: int) -> Iterator[Outcome]:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    _preload()
    lost: list[Task] = []
    with ProcessPoolExecutor(workers, mp_context=_context()) as pool:
        ordered = sorted(tasks, key=lambda task: -len(task.data))
        waiting = {pool.submit(run, task, job): task for task in ordered}
        for future in as_completed(waiting):
            try:
                yield future.result()
            except BrokenProcessPool:
                lost.append(waiting[future])
    for task in lost:  # a worker died: each file it had gets a process of its own, only the culprit is lost
        with ProcessPoolExecutor(1, mp_context=_context()) as pool:
            try:
                yield pool.submit(run, task, job).result()
            except BrokenProcessPool:
                yield Outcome(task.target.path, problems=(Problem(task.target.path, "the process that checked it died"),))


def _context() -> BaseContext:
    """Forking shares what is imported already; with other threads about, or where it cannot be had, a fresh interpreter it is."""
    import multiprocessing

    can_fork = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork else "spawn")


def _preload() -> None:
    """Imports once, before forking, what every worker needs."""
    from lifetime.linter import check, registry

    assert check
    registry.load()

"""Files spread over processes, where there is enough to do to pay for starting them."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from lifetime.linter.job import Job, Outcome, Task, run
from lifetime.linter.result import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.context import BaseContext

WORTH_BYTES = 300_000
"""About half a second of work for the rules; a pool starts in a tenth of that."""
MOST_BYTES = 8_000_000
"""Files waiting in memory at most: it does not grow with the tree."""


class Crew:
    """Takes files one by one and works on them while more are looked for. `jobs` 0 means as many as there are processors."""

    def __init__(self, how: Job, jobs: int) -> None:
        self.how = how
        self.workers = jobs or processors()
        self.outcomes: list[Outcome] = []
        self.held: list[Task] = []
        self.held_bytes = 0
        self.pool: ProcessPoolExecutor | None = None
        self.under_way: dict[Future[Outcome], Task] = {}
        self.lost: list[Task] = []

    @property
    def waiting(self) -> int:
        return len(self.held) + len(self.under_way) + len(self.lost)

    def give(self, task: Task) -> None:
        if self.workers == 1:
            self.outcomes.append(run(task, self.how))
            return
        self.held.append(task)
        self.held_bytes += len(task.data)
        if self.pool or self.held_bytes >= WORTH_BYTES and len(self.held) > 1:
            self._hand_out()

    def finish(self, tell: Callable[[], None] = lambda: None) -> list[Outcome]:
        """The outcome of every task, in no particular order; `tell` is called as they come."""
        if self.pool:
            self._collect(0, tell)
            self.pool.shutdown()
        self.outcomes += (run(task, self.how) for task in self.held)
        self.outcomes += (_alone(task, self.how) for task in self.lost)
        return self.outcomes

    def _hand_out(self) -> None:
        from concurrent.futures.process import BrokenProcessPool

        self.pool = self.pool or _pool(self.workers)
        for task in self.held:
            try:
                self.under_way[self.pool.submit(run, task, self.how)] = task
            except BrokenProcessPool:
                self.lost.append(task)
        self.held.clear()
        if self._bytes_under_way() > MOST_BYTES:
            self._collect(MOST_BYTES // 2)

    def _bytes_under_way(self) -> int:
        return sum(len(task.data) for task in self.under_way.values())

    def _collect(self, until_bytes: int, tell: Callable[[], None] = lambda: None) -> None:
        """Waits for outcomes until no more than `until_bytes` are under way."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        while self.under_way and self._bytes_under_way() >= until_bytes:
            done = wait(self.under_way, return_when=FIRST_COMPLETED).done
            for future in done:
                task = self.under_way.pop(future)
                try:
                    self.outcomes.append(future.result())
                except BrokenProcessPool:
                    self.lost.append(task)
            tell()


def _alone(task: Task, how: Job) -> Outcome:
    """A worker died: each file that was under way gets a process of its own, so that only the culprit is lost."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            return pool.submit(run, task, how).result()
        except BrokenProcessPool:
            return Outcome(task.target.path, problems=(Problem(task.target.path, "the process that checked it died"),))


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pool(workers: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    from lifetime.linter import check, registry  # imported once, before forking

    assert check
    registry.load()
    return ProcessPoolExecutor(workers, mp_context=_context())


def _context() -> BaseContext:
    """Forking shares what is imported already; with other threads about, or where it cannot be had, a fresh interpreter it is."""
    import multiprocessing

    can_fork = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork else "spawn")

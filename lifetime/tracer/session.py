"""One trace: counts boundaries, listens at each, has the heap looked at, and makes the report."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lifetime.errors import CaptureError, LifetimeError
from lifetime.heap.model import Environment, Gap, Report, Step, Survivor, Verdict
from lifetime.tracer import ranks
from lifetime.tracer.gcmode import Collector
from lifetime.tracer.options import ENOUGH_TO_GROW, Options
from lifetime.tracer.seen import Seen, by_site

if TYPE_CHECKING:
    from lifetime.tracer.heap import Heap
    from lifetime.tracer.sites import Sites

_ORDER = {verdict: position for position, verdict in enumerate(Verdict)}


class Session:
    """Armed until the last step that was asked for. Belongs to one process: `here` is false in a fork of it."""

    def __init__(self, options: Options, command: Sequence[str] = ()) -> None:
        self.options = options
        self.command = tuple(command)
        self.collector = Collector(options.gc)
        self.on_disarm: list[Callable[[], None]] = []
        self.steps: list[Step] = []
        self.gaps: list[Gap] = []
        self.sites: Sites | None = None
        self.failure: LifetimeError | None = None
        self.armed = True
        self._pid = os.getpid()
        self._quiet = min(options.start_step, options.first - 1)
        self.seen = 0
        self._busy = False
        self._heap: Heap | None = None
        if options.first == 0:
            self.collector.hold()

    @property
    def here(self) -> bool:
        """This is the process that was traced, not a child of it."""
        return os.getpid() == self._pid

    def is_quiet(self) -> bool:
        """The steps that come are only counted."""
        return self.seen < self._quiet

    def boundary(self) -> None:
        """A step has ended. Does nothing once disarmed, or while another thread's boundary is looked at."""
        if not self.armed or self._busy:
            return
        self._busy = True
        try:
            self._boundary()
        finally:
            self._busy = False

    def fail(self, error: Exception) -> None:
        """What went wrong in the tracer is told at the end; nothing is traced any more."""
        self.failure = CaptureError(f"the tracer failed at step {self.seen - 1}: {error!r}", "please report this")
        self.disarm()

    def _boundary(self) -> None:
        index, self.seen = self.seen, self.seen + 1
        if index >= self.options.start_step:
            self._observe(index)
        if index + 1 == self.options.first:
            self.collector.hold()
        if index >= self.options.last:
            self.disarm()

    def _observe(self, index: int) -> None:
        heap, judged = self.heap(), index >= self.options.first
        if heap is None:
            self.steps.append(Step(index, 0))
            return
        if self.sites:
            self.sites.at_boundary(judged)
        self.steps.append(heap.observe(index))
        if judged:
            heap.look(index)

    def heap(self) -> Heap | None:
        """The live half, from the moment that the program itself has imported torch."""
        if self._heap is None and "torch" in sys.modules:
            from lifetime.tracer.heap import Heap

            self._heap = Heap(self.options)
            self._heap.arm()
            self.on_disarm.append(self._heap.disarm)
        return self._heap

    def disarm(self) -> None:
        """Stop looking, and put the program's own settings back. Once is enough."""
        self.armed = False
        self.collector.release()
        while self.on_disarm:
            self.on_disarm.pop()()

    @property
    def judged(self) -> int:
        """How many boundaries after warm-up were seen."""
        return sum(step.index >= self.options.first for step in self.steps)

    def report(self) -> Report:
        """What was seen until now; waits for the forked child that still looks."""
        seen = self._heap.result() if self._heap else Seen()
        self.failure = self.failure or seen.failure
        sites = self.sites.report(by_site(seen.members, self.sites.storages())) if self.sites else ()
        told = (*self._about_steps(), *self.gaps, *(self.sites.gaps() if self.sites else ()), *seen.gaps)
        return Report(self._environment(), tuple(self.steps), sites, _ordered(seen.survivors), told)

    def report_of(self, seen: Seen) -> Report:
        """A report of one moment: who held what then."""
        return Report(self._environment(), tuple(self.steps), (), _ordered(seen.survivors), seen.gaps)

    def _environment(self) -> Environment:
        torch = sys.modules.get("torch")
        device = self._heap.device() if self._heap else "cpu"
        version = str(torch.__version__) if torch else None
        return Environment(
            platform.python_version(),
            version,
            device,
            self.collector.state(),
            ranks.rank(),
            ranks.world_size(),
            self.command,
        )

    def _about_steps(self) -> list[Gap]:
        judged, asked = self.judged, self.options.steps
        if judged >= asked:
            return []
        why = f"{judged} of {asked} steps after warm-up were seen"
        return [Gap("steps", why if judged >= ENOUGH_TO_GROW else f"{why}; growing needs at least {ENOUGH_TO_GROW}")]


def _ordered(survivors: Iterable[Survivor]) -> tuple[Survivor, ...]:
    return tuple(sorted(survivors, key=lambda s: (_ORDER[s.verdict], -s.bytes, s.fingerprint)))

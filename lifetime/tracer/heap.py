"""The live half of a session: what `lifetime.heap` watches and captures. Imported once the program has torch."""

from __future__ import annotations

from lifetime.heap.capture import Pending, look
from lifetime.heap.graph import History
from lifetime.heap.model import Gap, Step, Survivor
from lifetime.heap.watch import Watch
from lifetime.tracer import device
from lifetime.tracer.options import Options


class Heap:
    """Watches storages from boundary to boundary; the newest capture counts, an older one is dropped."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.watch = Watch()
        self._pending: Pending | None = None

    def observe(self, index: int) -> Step:
        return device.measured(index, self.watch.observe(index))

    def look(self, first: int, index: int) -> None:
        if self._pending is not None:
            self._pending.cancel()
        history = History(first, index, self.watch.deaths())
        self._pending = look(self.watch.alive(), history, prove=self.options.prove, deadline_s=self.options.deadline_s)

    @property
    def ready(self) -> bool:
        return self._pending is None or self._pending.ready()

    def result(self) -> tuple[tuple[Survivor, ...], tuple[Gap, ...]]:
        if self._pending is None:
            return (), ()
        seen = self._pending.wait()
        return (*seen.survivors, *seen.known), tuple(seen.gaps)

    def device(self) -> str:
        return device.name()

"""The live half of a session: what `lifetime.heap` watches and captures. Imported once the program has torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap.capture import Look, Pending, look
from lifetime.heap.graph import History, StorageId, Watched
from lifetime.heap.model import Gap, Step, Survivor, Verdict
from lifetime.heap.watch import Watch
from lifetime.tracer import device
from lifetime.tracer.collected import MOST, Collected
from lifetime.tracer.deep import Births
from lifetime.tracer.options import ENOUGH_TO_GROW, Options
from lifetime.tracer.seen import Seen

LONG_PAUSE_S = 0.25


class Heap:
    """Watches storages from boundary to boundary and has the heap looked at.

    Each judged boundary is captured, since it may be the last that the program reaches; the next one drops that capture.
    Where a look takes long (much memory, or no fork) only the boundaries from which something can be said are.
    Two are kept beside the newest: those of the boundaries before and after the first collection in which a watched storage died.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.watch = Watch(options.addresses)
        self.collected = Collected()
        self.births = Births() if options.deep else None
        self._newest: Pending | None = None
        self._before: Pending | None = None
        self._cyclic: Pending | None = None
        self._slow = False
        self._looked_at = self._last_seen = -1

    def arm(self) -> None:
        if self.options.gc == "as-is":
            self.collected.install()
        if self.births is not None:
            self.births.__enter__()  # type: ignore[no-untyped-call]

    def disarm(self) -> None:
        self.collected.remove()
        if self.births is not None:
            self.births.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self.births = None

    @staticmethod
    def device() -> str:
        return device.name()

    def observe(self, index: int) -> Step:
        """The boundary `index`, listed and measured."""
        self._last_seen = index
        self.watch.died_in_collection(self.collected.take())
        step = device.measured(index, self.watch.observe(index))
        self.collected.watch(self.watch.youngest(MOST))
        return step

    def look(self, index: int) -> None:
        """Capture what is alive now, if that is worth it."""
        if self._slow and index not in {self.options.first + ENOUGH_TO_GROW - 1, self.options.last}:
            return
        is_first = self.collected.count > 0 and self._cyclic is None
        if is_first:
            self._before = self._newest
        elif self._newest is not None:
            self._newest.cancel()
        self._newest = None
        pending = self._look(self.watch.alive(), History(self.options.first, index, self.watch.deaths()))
        self._slow = self._slow or pending.paused_s > LONG_PAUSE_S
        self._looked_at = index
        if is_first:
            self._cyclic = pending
        else:
            self._newest = pending

    def result(self) -> Seen:
        """The newest capture's survivors, and the cycles that earlier ones saw before gc took them."""
        newest, cyclic, before = wait(self._newest or self._cyclic), wait(self._cyclic), wait(self._before)
        cycles = {one.fingerprint: one for one in (*before.survivors, *cyclic.survivors) if one.verdict is Verdict.UNTIL_GC}
        left = {one.fingerprint: one for one in newest.survivors if one.verdict is not Verdict.LINGERING}
        found = {**{one.fingerprint: one for one in newest.survivors}, **cycles, **left}
        gaps = dict.fromkeys((*cyclic.gaps, *newest.gaps))
        if 0 <= self._looked_at < self._last_seen:
            gaps[Gap("capture of the last steps", f"the survivors are those of step {self._looked_at}: a look takes long here")] = (
                None
            )
        return Seen(tuple(found.values()), tuple(gaps), {**before.members, **cyclic.members, **newest.members})

    def _look(self, alive: Mapping[StorageId, Watched], history: History) -> Pending:
        places = self.births.places() if self.births is not None else {}
        told = {key: replace(one, created_at=places.get(key)) for key, one in alive.items()}
        return look(told, history, prove=self.options.prove, deadline_s=self.options.deadline_s)


def everyone(deadline_s: float, addresses: bool = False) -> Seen:
    """Who holds what is alive now: every holder, leak or not."""
    watch = Watch(addresses)
    watch.observe(0)
    return wait(look(watch.alive(), History(0, 0), prove=False, deadline_s=deadline_s, everything=True))


@dataclass(frozen=True)
class Stored:
    """A storage by name and size. `reference` keeps its name from being given to another, not the storage alive."""

    watched: Watched
    reference: StorageWeakRef


def storage_of(tensor: torch.Tensor) -> Stored:
    """The storage of `tensor`: nothing that keeps it alive."""
    with torch._C.DisableTorchFunction():
        storage = tensor.untyped_storage()
        return Stored(Watched(StorageId(storage._cdata), 0, storage.nbytes()), StorageWeakRef(storage))


def holder(storage: Stored, deadline_s: float = 30.0) -> Survivor | None:
    """Who holds the storage now; None where nobody does.

    Raises:
        CaptureError: the heap could not be looked at.
    """
    if storage.reference.expired():
        return None
    alive = {storage.watched.storage: storage.watched}
    seen = answered(look(alive, History(0, 0), prove=True, deadline_s=deadline_s, everything=True))
    return seen.survivors[0] if seen.survivors else None


def wait(pending: Pending | None) -> Seen:
    if pending is None:
        return Seen()
    seen: Look = pending.wait()
    return Seen((*seen.survivors, *seen.known), tuple(seen.gaps), seen.members)


def answered(pending: Pending) -> Seen:
    """The same, where no answer must not read as "nobody".

    Raises:
        CaptureError: the heap could not be looked at.
    """
    seen = wait(pending)
    if seen.failure is not None:
        raise seen.failure
    return seen


class Baseline:
    """What is alive before something that should leave nothing behind."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.watch.observe(0)
        self.watch.forget_before(1)

    def survivors(self) -> tuple[Survivor, ...]:
        """What was made since and is still alive, by holder.

        Raises:
            CaptureError: the heap could not be looked at.
        """
        self.watch.observe(1)
        alive = self.watch.alive()
        if not alive:
            return ()
        return answered(look(alive, History(1, 1), prove=True, deadline_s=30.0, everything=True)).survivors

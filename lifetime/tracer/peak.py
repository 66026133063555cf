"""`--at-peak`: who is alive at the fullest moment, the start of an outermost backward, when all that it needs is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lifetime.heap.capture import Pending, look
from lifetime.heap.graph import History
from lifetime.heap.watch import Watch
from lifetime.tracer.guard import guarded, unseen_by_dynamo
from lifetime.tracer.heap import wait
from lifetime.tracer.seen import Seen

CLEARLY_MORE = 1.01
"""A new capture is worth its time only where it would show more than the last by this factor."""


class Peak:
    """From `install` to `remove`; the capture of the fullest moment so far is kept."""

    def __init__(self, deadline_s: float, fail: Callable[[Exception], None], addresses: bool = False) -> None:
        self.deadline_s = deadline_s
        self._watch = Watch(addresses)
        self._most_bytes = 0.0
        self._pending: Pending | None = None
        self._depth = 0
        self._look = guarded(self._look_now, fail)
        self._run: Callable[..., Any] | None = None

    def install(self) -> None:
        run = self._run = torch.autograd._engine_run_backward

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if self._depth == 0:
                self._look()
            self._depth += 1
            try:
                return run(*args, **kwargs)
            finally:
                self._depth -= 1

        torch.autograd._engine_run_backward = unseen_by_dynamo(run_backward)

    def remove(self) -> None:
        if self._run is not None:
            torch.autograd._engine_run_backward = self._run
            self._run = None

    def result(self) -> Seen | None:
        return None if self._pending is None else wait(self._pending)

    def _look_now(self) -> None:
        total = self._watch.observe(0)
        if total > CLEARLY_MORE * self._most_bytes:
            self._most_bytes = total
            if self._pending is not None:
                self._pending.cancel()
            alive = self._watch.alive()
            self._pending = look(alive, History(0, 0), prove=False, deadline_s=self.deadline_s, everything=True)

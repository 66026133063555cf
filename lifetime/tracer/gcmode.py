"""What the tracer does about Python's garbage collector: nothing but count, or keep it from starting by itself."""

from __future__ import annotations

import gc

from lifetime.heap.model import GcState


class Collector:
    """Automatic collection during the observed steps.

    `off` sets the first threshold to 0 instead of calling `gc.disable()`: what the program asks (`gc.isenabled()`) and
    does (`gc.enable()`) about collection stays its own, and only the automatic start is gone.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.enabled = gc.isenabled()
        self._thresholds: tuple[int, ...] | None = None

    def hold(self) -> None:
        """Automatic collection no longer starts, if the mode is `off`."""
        if self.mode == "off" and self._thresholds is None:
            self.enabled = gc.isenabled()
            self._thresholds = gc.get_threshold()
            gc.set_threshold(0, *self._thresholds[1:])

    def release(self) -> None:
        """As it was before `hold`, unless the program has set other thresholds since."""
        if self._thresholds is not None and gc.get_threshold()[0] == 0:
            gc.set_threshold(*self._thresholds)
        self._thresholds = None

    def state(self) -> GcState:
        return GcState(self.enabled, self.mode)

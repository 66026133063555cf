"""What a trace was asked for."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_BOUNDARIES = 2
"""With fewer there is no step to compare with."""


ENOUGH_TO_GROW = 4
"""Boundaries after warm-up that a verdict of growing needs."""


@dataclass(frozen=True)
class Options:
    """The options of `lifetime trace`, in the words of the command line.

    `step` is `optimizer`, `backward`, the name of a function, or None for the defaults (see `tracer.detect`).
    The first `start_step` boundaries are not looked at, the next `warmup` only listed, the next `steps` judged.
    """

    step: str | None = None
    warmup: int = 1
    steps: int = 6
    start_step: int = 0
    stop: bool = False
    gc: str = "as-is"
    sites: tuple[str, ...] = ()
    prove: bool = True
    deep: bool = False
    addresses: bool = False
    on_oom: bool = True
    at_peak: bool = False
    deadline_s: float = 30.0

    @property
    def first(self) -> int:
        """Index of the first boundary after warm-up."""
        return self.start_step + self.warmup

    @property
    def last(self) -> int:
        """Index of the boundary at which the report is made."""
        return self.first + self.steps - 1

"""What a verification says: the program with and without the fix, side by side (`lifetime.verify/1`). No IO, no formatting.

An *arm* is one of the two: `before` as shipped, `after` with the fixes applied in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from lifetime.heap.model import Environment

SCHEMA = "lifetime.verify/1"


class Conclusion(str, Enum):
    LOWER = "lower"
    NO_GAIN = "no-gain"
    CORRECTED = "corrected"
    CHANGED = "changed"
    NOT_DETERMINISTIC = "not-deterministic"


@dataclass(frozen=True)
class Digest:
    """The bits of one tensor, as a hash."""

    name: str
    value: str


@dataclass(frozen=True)
class ArmStep:
    """One step of one run. `gradients` are taken just before the optimizer's step (after the backward pass where there is no
    optimizer). The bytes are those between this step and the next; None where there was no next. `copied` counts gradient
    buffers that AccumulateGrad had to copy, `adopted` those that it took over as they came."""

    gradients: tuple[Digest, ...]
    loss: float | None
    seconds: float
    copied: int
    adopted: int
    floor_bytes: int | None = None
    live_bytes: int | None = None


@dataclass(frozen=True)
class ArmRun:
    """One run of one arm: what it computed and what it kept. `fixes` are the findings whose fix was applied, as lint's
    JSON; `stale` says where LT011 found that a held gradient makes later ones wrong."""

    environment: Environment
    steps: tuple[ArmStep, ...]
    parameters: tuple[Digest, ...]
    peak_bytes: int
    fixes: tuple[Mapping[str, object], ...] = ()
    stale: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """The first gradient that is not the same. `max_abs` is None where the shapes differ or a step is missing."""

    step: int
    parameter: str
    max_abs: float | None


@dataclass(frozen=True)
class Gradients:
    identical: bool
    first_difference: Difference | None = None


@dataclass(frozen=True)
class Parameters:
    identical: bool


@dataclass(frozen=True)
class Loss:
    step: int
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Metric:
    """Medians over the repetitions; a spread is the largest value less the smallest."""

    name: str
    unit: str
    before: float
    after: float
    spread_before: float
    spread_after: float


@dataclass(frozen=True)
class Extrapolation:
    """A fitted value outside the measured range. `residual` is the fit's largest error inside it, in the same unit."""

    what: str
    value: float
    residual: float


@dataclass(frozen=True)
class Verification:
    environment: Environment
    fixes: tuple[Mapping[str, object], ...]
    repetitions: int
    gradients: Gradients
    parameters: Parameters
    losses: tuple[Loss, ...]
    metrics: tuple[Metric, ...]
    conclusion: Conclusion
    extrapolation: tuple[Extrapolation, ...] | None = None
    reasons: tuple[str, ...] = ()
    schema: str = SCHEMA

"""How a saving grows with the size of the problem: a line through what was measured, and what it says beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lifetime.errors import UsageError
from lifetime.verify.model import Extrapolation, Metric

BEYOND = (2, 10)
"""How far beyond the largest measured size, in multiples of it."""


@dataclass(frozen=True)
class Scale:
    """Which argument of the program is varied, and over which values."""

    key: str
    values: tuple[float, ...]

    def arguments(self, given: Sequence[str], value: float) -> list[str]:
        """The program's arguments with the key set to `value`: replaced where it stands, appended where it does not."""
        flag = self.key if self.key.startswith("-") else f"--{self.key}"
        text = f"{value:g}" if value != int(value) else str(int(value))
        result, replaced = list(given), False
        for index, argument in enumerate(given):
            if argument == flag and index + 1 < len(given):
                result[index + 1], replaced = text, True
            elif argument.startswith(f"{flag}="):
                result[index], replaced = f"{flag}={text}", True
        return result if replaced else [*result, flag, text]


def parse(text: str) -> Scale:
    """`KEY=V1,V2,V3`.

    Raises:
        UsageError: no key, a value that is no number, or fewer than two values.
    """
    key, _, rest = text.partition("=")
    try:
        values = tuple(sorted({float(value) for value in rest.split(",")}))
    except ValueError:
        values = ()
    if not key or len(values) < 2:
        raise UsageError(f"--scale {text!r} is not KEY=V1,V2 with at least two numbers", "example: --scale seq=128,256,512")
    return Scale(key, values)


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Slope, intercept and largest absolute residual of the least-squares line through `points`."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    intercept = mean_y - slope * mean_x
    return slope, intercept, max(abs(y - slope * x - intercept) for x, y in points)


def extrapolate(scale: Scale, tables: Sequence[Sequence[Metric]]) -> tuple[Extrapolation, ...]:
    """The saved floor beyond the largest size, one table of metrics a measured size."""
    points = [(value, _saved(table)) for value, table in zip(scale.values, tables, strict=True)]
    slope, intercept, residual = line(points)
    largest = scale.values[-1]
    return tuple(
        Extrapolation(f"floor_bytes saved at {scale.key}={factor * largest:g}", slope * factor * largest + intercept, residual)
        for factor in BEYOND
    )


def _saved(table: Sequence[Metric]) -> float:
    floor = next((metric for metric in table if metric.name == "floor_bytes"), None)
    if floor is None:
        raise UsageError("the program never reached a second step, so it has no floor to fit")
    return floor.before - floor.after

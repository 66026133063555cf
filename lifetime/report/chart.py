"""Small charts as SVG: bytes a step. Classes only, no style of their own; the page's sheet paints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from lifetime.heap.model import Step
from lifetime.units import bytes_text

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 520, 200, 96, 36, 14
MOST_POINTS = 240


def steps_chart(steps: Sequence[Step]) -> str:
    """Live bytes a step, and the allocator's floor where the device has one; empty below two steps."""
    if len(steps) < 2:
        return ""
    shown = _thinned(steps)
    lines, base, top = _scaled(shown)
    label = f"Bytes at each step's end: {_words(steps)}"
    body = "".join([*_axes(shown, base, top), *_curves(lines, base, top)])
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(label)}</title>{body}</svg>'


def axis_start(steps: Sequence[Step]) -> int:
    """Where the axis begins: not at 0 where all steps are so high that nothing could be told from there."""
    return round(_scaled(_thinned(steps))[1])


Line = tuple[str, str, Sequence[int]]


def _scaled(steps: Sequence[Step]) -> tuple[list[Line], float, int]:
    """The lines, and both ends of the axis."""
    lines: list[Line] = [("live", "live bytes", [s.live_bytes for s in steps])]
    floor = [s.allocated_bytes for s in steps if s.allocated_bytes is not None]
    if len(floor) == len(steps):
        lines.append(("floor", "allocated", floor))
    top = max(max(values) for _, _, values in lines) or 1
    low = min(min(values) for _, _, values in lines)
    return lines, 0 if low < top * 0.6 or low == top else low - (top - low) * 0.15, top


def _thinned(steps: Sequence[Step]) -> list[Step]:
    """At most `MOST_POINTS`, evenly spread, the last one among them."""
    if len(steps) <= MOST_POINTS:
        return list(steps)
    return [steps[round(k * (len(steps) - 1) / (MOST_POINTS - 1))] for k in range(MOST_POINTS)]


def _words(steps: Sequence[Step]) -> str:
    first, last = steps[0], steps[-1]
    return f"live {bytes_text(first.live_bytes)} at step {first.index}, {bytes_text(last.live_bytes)} at step {last.index}"


def _axes(steps: Sequence[Step], base: float, top: int) -> Iterator[str]:
    marks = [round(base + (top - base) * share) for share in (0.0, 0.5, 1.0)]
    digits = next((n for n in (1, 2) if len({bytes_text(mark, n) for mark in marks}) == len(marks)), 3)
    for mark in marks:
        y = _y(mark, base, top)
        yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 8}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{bytes_text(mark, digits)}</text>'
    last = len(steps) - 1
    every = max(1, -(-last // 8))
    for k in range(0, last + 1, every):
        yield f'<text x="{_x(k, last)}" y="{HEIGHT - 8}" text-anchor="middle">{steps[k].index}</text>'
    yield f'<text x="{LEFT - 8}" y="{HEIGHT - 8}" text-anchor="end">step</text>'


def _curves(lines: Sequence[Line], base: float, top: int) -> Iterator[str]:
    for name, label, values in lines:
        last = len(values) - 1
        points = [(_x(k, last), _y(value, base, top)) for k, value in enumerate(values)]
        yield f'<polyline class="{name}" points="{" ".join(f"{x},{y}" for x, y in points)}"><title>{label}</title></polyline>'
        if len(points) <= 40:
            for (x, y), value in zip(points, values, strict=True):
                yield f'<circle class="dot-{name}" cx="{x}" cy="{y}" r="3"><title>{label} {bytes_text(value)}</title></circle>'


def _x(k: int, last: int) -> float:
    return round(LEFT + 6 + k * (WIDTH - LEFT - 22) / max(last, 1), 1)


def _y(value: float, base: float, top: int) -> float:
    share = (value - base) / (top - base) if top > base else 0.5
    return round(HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP), 1)

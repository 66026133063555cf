"""A verification as text and as the Markdown table that a pull request needs."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.units import bytes_text, plural
from lifetime.verify.model import Conclusion, Metric, Verification

NAMES = {
    "floor_bytes": "allocator floor between steps",
    "peak_bytes": "peak memory",
    "live_bytes": "live tensor bytes between steps",
    "step_seconds": "time a step",
    "gradient_copies": "gradient buffers copied a step",
}
SENTENCES = {
    Conclusion.LOWER: "Same numbers, less memory: gradients and parameters are bit for bit the same.",
    Conclusion.NO_GAIN: "Same numbers, and the fix buys nothing that was measured here.",
    Conclusion.CORRECTED: "The fix changes the numbers because they were wrong.",
    Conclusion.CHANGED: "The fix changes the numbers: do not merge it as a release of memory.",
    Conclusion.NOT_DETERMINISTIC: "The program does not compute the same twice without any fix: nothing can be concluded.",
}
SEEDS = "Seed torch, numpy and random, turn off dropout or torch.use_deterministic_algorithms(True), and fix the data order."


def verify_text(result: Verification) -> Iterator[str]:
    """Lines for a terminal: the conclusion first."""
    yield f"{result.conclusion.value}: {SENTENCES[result.conclusion]}"
    yield from _reasons(result)
    rows = [("", "before", "after", "change"), *(_row(metric) for metric in result.metrics)]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    yield ""
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
    yield ""
    yield from _conditions(result)
    yield from _beyond(result)


def verify_markdown(result: Verification) -> str:
    """A section for a pull request: conclusion, table, what was measured and how."""
    lines = [f"**{result.conclusion.value}**: {SENTENCES[result.conclusion]}", ""]
    lines += [f"- {line}" for line in _reasons(result)]
    lines += ["", "| metric | before | after | change |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {' | '.join(_row(metric))} |" for metric in result.metrics]
    lines += ["", *(f"- {line}" for line in _conditions(result)), *(f"- {line}" for line in _beyond(result))]
    return "\n".join(lines) + "\n"


def _reasons(result: Verification) -> Iterator[str]:
    first = result.gradients.first_difference
    if first is not None:
        size = "" if first.max_abs is None else f", largest difference {first.max_abs:.6g}"
        what = f"gradient of {first.parameter}" if first.parameter else "one run has fewer steps"
        yield f"first difference: step {first.step}, {what}{size}"
    yield from result.reasons
    if result.conclusion is Conclusion.NOT_DETERMINISTIC:
        yield SEEDS


def _row(metric: Metric) -> tuple[str, str, str, str]:
    change = metric.after - metric.before
    percent = f" ({100 * change / metric.before:+.1f} %)" if metric.before else ""
    spread = max(metric.spread_before, metric.spread_after)
    noise = f" ± {_amount(spread, metric.unit)}" if spread else ""
    signed = ("+" if change > 0 else "") + _amount(change, metric.unit)
    before, after = _amount(metric.before, metric.unit), _amount(metric.after, metric.unit)
    return NAMES.get(metric.name, metric.name), before, after, f"{signed}{percent}{noise}"


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return bytes_text(int(value))
    return f"{value:.3f} s" if unit == "s" else f"{value:g}"


def _conditions(result: Verification) -> Iterator[str]:
    places = [f"{fix['code']} {fix['path']}:{fix['line']}" for fix in result.fixes]
    yield f"fixes applied in memory: {', '.join(places)}"
    yield f"gradients compared bit for bit over {plural(len(result.losses), 'step')}: {_same(result.gradients.identical)}"
    yield f"final parameters: {_same(result.parameters.identical)}"
    where = result.environment
    yield f"{plural(result.repetitions, 'repetition')} of each, interleaved"
    yield f"torch {where.torch}, Python {where.python}, {where.device}"
    yield f"command: {' '.join(where.command)}"


def _same(identical: bool) -> str:
    return "identical" if identical else "not identical"


def _beyond(result: Verification) -> Iterator[str]:
    for guess in result.extrapolation or ():
        text, off = bytes_text(int(guess.value)), bytes_text(int(guess.residual))
        yield f"extrapolation (a line through what was measured, largest residual {off}): {guess.what}: {text}"

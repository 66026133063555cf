"""Findings for people: a clickable line, the code with carets under it, and what can be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lifetime.linter.model import Finding, Fix, Safety, Severity
from lifetime.linter.result import LintResult
from lifetime.report.lint_frame import frame_lines

BOLD, RED, YELLOW, BLUE, CYAN = "1", "1;31", "1;33", "1;34", "36"
HUES = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.NOTE: CYAN}


def lines(result: LintResult, *, color: bool = False) -> Iterator[str]:
    """Each finding as `path:line:column: CODE message`, a frame of code, and its fix; then an empty line."""
    for finding in result.findings:
        yield from finding_lines(finding, color=color)
        yield ""


def statistics(result: LintResult) -> Iterator[str]:
    """How many findings of each rule, most first; `[*]` marks rules with fixes."""
    counts = Counter((f.code, f.name) for f in result.findings)
    fixable = {f.code for f in result.findings if f.fix}
    width = max((len(f"{n:,}") for n in counts.values()), default=0)
    for (code, name), number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"{number:>{width},} {code} {'[*]' if code in fixable else '[ ]'} {name}"


def finding_lines(finding: Finding, *, color: bool = False) -> Iterator[str]:
    paint = _paint if color else _plain
    hue = HUES[finding.severity]
    severity = "" if finding.severity is Severity.WARNING else f" {finding.severity.value}:"
    yield f"{paint(place(finding), BOLD)}: {paint(finding.code, hue)}{severity} {finding.message}"
    frame = list(frame_lines(finding))
    gutter = max((len(number) for number, _ in frame), default=0)
    if frame:
        yield paint(f"{'':>{gutter}} |", BLUE)
    for number, text in frame:
        bar = paint(f"{number:>{gutter}} |", BLUE)
        yield f"{bar} {text if number else paint(text, hue)}".rstrip()
    if frame:
        yield paint(f"{'':>{gutter}} |", BLUE)
    if finding.fix:
        yield f"{'':>{gutter}} {paint('=', BLUE)} {paint('fix', BOLD)}: {fix_text(finding.fix)}"


def place(finding: Finding) -> str:
    cell = f"cell {finding.cell}:" if finding.cell else ""
    return f"{finding.path}:{cell}{finding.span.start_line}:{finding.span.start_column + 1}"


def fix_text(fix: Fix) -> str:
    """What the fix does and which option makes it."""
    if fix.safety is Safety.SAFE:
        return f"{fix.title} (`--fix`)"
    return f"{fix.title} (`--fix --unsafe-fixes`: {fix.reason})"


def _paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


def _plain(text: str, style: str) -> str:
    return text

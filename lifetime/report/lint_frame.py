"""A piece of source with a line of carets under what a finding is about."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from lifetime.linter.model import Finding

TAB = 4
WIDEST = 160
"""Longer lines are shown in part, around the finding."""
MOST_MARKED = 4
"""Lines of one finding that get carets."""


def frame_lines(finding: Finding) -> Iterator[tuple[str, str]]:
    """(gutter, text) of each line, the caret lines with an empty gutter and nothing but carets."""
    span = finding.span
    shift = _shift(finding)
    last_marked = min(span.end_line, span.start_line + MOST_MARKED - 1)
    for number, line in enumerate(finding.excerpt, finding.excerpt_line):
        yield str(number), _visible(line)[shift : shift + WIDEST].rstrip()
        if span.start_line <= number <= last_marked:
            start, end = _columns(finding, number, line)
            left = max(0, _width(line[:start]) - shift)
            right = min(WIDEST, _width(line[:end]) - shift)
            yield "", " " * left + "^" * max(1, right - left)


def _columns(finding: Finding, number: int, line: str) -> tuple[int, int]:
    """The part of a line that belongs to the finding, in characters."""
    span = finding.span
    start = span.start_column if number == span.start_line else len(line) - len(line.lstrip())
    end = span.end_column if number == span.end_line else len(line.rstrip())
    return start, end


def _shift(finding: Finding) -> int:
    """How far to the right the shown part begins: 0 unless the finding would be out of sight."""
    at = finding.span.start_line - finding.excerpt_line
    if not 0 <= at < len(finding.excerpt):
        return 0
    line = finding.excerpt[at]
    reach = _width(line[: finding.span.end_column]) if finding.span.end_line == finding.span.start_line else 0
    return max(0, _width(line[: finding.span.start_column]) - 40) if reach > WIDEST else 0


def _visible(line: str) -> str:
    """The line as it takes up columns: tabs as spaces, nothing that moves the cursor."""
    return "".join(" " * TAB if c == "\t" else c if c.isprintable() else " " for c in line)


def _width(text: str) -> int:
    if text.isascii():
        return len(text) + (TAB - 1) * text.count("\t")
    return sum(TAB if c == "\t" else _cells(c) for c in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

"""Edits applied to text: positions stay those of the original, line ends those of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lifetime.linter.model import Edit, Fix, Span

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def splice(source: str, edits: Iterable[Edit]) -> str:
    """`source` with all edits made. They must not overlap; of several equal ones only one is made."""
    starts = _starts(source)
    newline = _newline(source)
    parts: list[str] = []
    done = 0
    for edit in sorted(set(edits), key=lambda e: e.span):
        begin = _offset(starts, edit.span.start_line, edit.span.start_column, len(source))
        parts += (source[done:begin], edit.text.replace("\r\n", "\n").replace("\n", newline))
        done = _offset(starts, edit.span.end_line, edit.span.end_column, len(source))
    return "".join((*parts, source[done:]))


def compatible(fixes: Iterable[Fix]) -> list[Fix]:
    """Those of `fixes` that can be made together, first come first served. Equal edits of two fixes do not clash."""
    chosen: list[Fix] = []
    taken: list[Edit] = []
    for fix in fixes:
        if not any(_clash(new, old) for new in fix.edits for old in taken):
            chosen.append(fix)
            taken += fix.edits
    return chosen


def _clash(new: Edit, old: Edit) -> bool:
    return new != old and _start(new.span) <= _end(old.span) and _start(old.span) <= _end(new.span)


def _start(span: Span) -> tuple[int, int]:
    return span.start_line, span.start_column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


def _starts(source: str) -> list[int]:
    """Offset of each line, as `ast` counts lines."""
    return [0, *(match.end() for match in LINE.finditer(source))]


def _offset(starts: list[int], line: int, column: int, length: int) -> int:
    return min(starts[line - 1] + column, length) if line <= len(starts) else length


def _newline(source: str) -> str:
    first = LINE.match(source)
    end = first[0][len(first[0].rstrip("\r\n")) :] if first else ""
    return end or "\n"

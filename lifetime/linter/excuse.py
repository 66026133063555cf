"""Excuses written for findings: `# lifetime: keep[CODE] reason` behind the line each stands on."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Collection, Iterable

from lifetime.linter import suppress
from lifetime.linter.check import Place, examine
from lifetime.linter.fixer import Repaired
from lifetime.linter.loader import Document
from lifetime.linter.model import Edit, Finding, Span
from lifetime.linter.module import Module
from lifetime.linter.suppress import Keep


def add(document: Document, place: Place, codes: Collection[str], reason: str) -> Repaired:
    """The document with an excuse for every finding that can have one.

    Raises:
        SourceError: it does not parse.
    """
    checked = examine(document, place, codes)
    new = document.splice(edits(document.source, checked.findings, reason))
    after = examine(new, place, codes)
    left = {finding.fingerprint for finding in after.findings}
    return Repaired(new, tuple(f for f in checked.findings if f.fingerprint not in left), after)


def edits(source: str, findings: Iterable[Finding], reason: str) -> list[Edit]:
    """The comments to add; an excuse that is there already gets further codes."""
    import ast

    module = Module("", source, ast.parse(source))
    ends = _ends(module)
    codes: dict[int, list[str]] = defaultdict(list)
    for finding in findings:
        row = next((row for row in range(finding.span.start_line, len(module.lines) + 1) if row in ends), 0)
        if row and finding.code != "LT000" and finding.code not in codes[row]:
            codes[row].append(finding.code)
    there = {keep.span.start_line: keep for keep in suppress.keeps(module) if keep.is_valid}
    return [_edit(module, row, ends[row], there.get(row), found, reason) for row, found in codes.items() if found]


def _edit(module: Module, row: int, column: int, there: Keep | None, codes: list[str], reason: str) -> Edit:
    if there:
        at = module.lines[row - 1].index("]", there.span.start_column)
        return Edit(Span(row, at, row, at), "," + ",".join(codes))
    return Edit(Span(row, column, row, column), f"  # lifetime: keep[{','.join(codes)}] {reason}")


def _ends(module: Module) -> dict[int, int]:
    """Rows that a comment can follow, and the column where it would: not within a string, not after a backslash."""
    tokens = tokenize.generate_tokens(io.StringIO("\n".join(module.lines)).readline)
    return {t.start[0]: t.start[1] for t in tokens if t.type in (tokenize.NEWLINE, tokenize.NL)}

"""Findings for people: a clickable line, the code and a caret under it."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.model import Finding, LintResult


def lines(result: LintResult, *, color: bool = False) -> Iterator[str]:
    for finding in result.findings:
        yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[str]:
    span = finding.span
    yield f"{finding.path}:{span.start_line}:{span.start_column + 1}: {finding.code} {finding.message}"

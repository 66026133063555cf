"""Findings as workflow commands: GitHub shows them beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.model import Finding, Severity
from lifetime.linter.result import LintResult, Problem
from lifetime.report.lint_paths import from_root
from lifetime.report.lint_text import fix_text, place

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def lines(result: LintResult, base: str = "") -> Iterator[str]:
    for finding in result.findings:
        yield _finding(finding, base)
    for problem in result.problems:
        yield _problem(problem, base)


def _finding(finding: Finding, base: str) -> str:
    span = finding.span
    where = {"title": f"lifetime ({finding.code})", "file": from_root(finding.path, base)}
    if not finding.cell:
        where |= {"line": str(span.start_line), "endLine": str(span.end_line)}
    if not finding.cell and span.start_line == span.end_line:  # GitHub takes columns only within one line
        where |= {"col": str(span.start_column + 1), "endColumn": str(span.end_column + 1)}
    text = f"{place(finding)}: {finding.code} {finding.message}"
    help = f"\n  fix: {fix_text(finding.fix)}" if finding.fix else ""
    return _command(COMMANDS[finding.severity], where, text + help)


def _problem(problem: Problem, base: str) -> str:
    line = {"line": str(problem.line)} if problem.line else {}
    where = {"title": "lifetime", "file": from_root(problem.path, base), **line}
    return _command("error", where, f"{problem.path}: {problem.message}")


def _command(name: str, properties: dict[str, str], text: str) -> str:
    listed = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{name} {listed}::{_escaped(text)}"


def _escaped(text: str, also: str = "") -> str:
    """Source: actions/toolkit, packages/core/src/command.ts."""
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text

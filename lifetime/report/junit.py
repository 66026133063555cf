"""Findings as JUnit XML: a suite a file, a failure a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from lifetime.linter.model import Finding
from lifetime.linter.result import LintResult, Problem
from lifetime.report.lint_paths import from_root
from lifetime.report.lint_text import place

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def lines(result: LintResult, base: str = "") -> Iterator[str]:
    """The document; a run without findings is one test that passed."""
    failures, errors = len(result.findings), len(result.problems)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f'<testsuites name="lifetime" tests="{failures + errors or 1}" failures="{failures}" errors="{errors}">'
    for path, found in groupby(result.findings, key=lambda finding: finding.path):
        yield from _suite(from_root(path, base), [_failure(finding) for finding in found], "failures")
    for path, problems in groupby(result.problems, key=lambda problem: problem.path):
        yield from _suite(from_root(path, base), [_error(problem) for problem in problems], "errors")
    if not failures + errors:
        yield from _suite("lifetime", ['    <testcase name="no findings" classname="lifetime"/>'], "failures", 0)
    yield "</testsuites>"


def _suite(name: str, cases: list[str], what: str, count: int | None = None) -> Iterator[str]:
    bad = {"failures": 0, "errors": 0, what: len(cases) if count is None else count}
    yield f'  <testsuite name="{_text(name)}" tests="{len(cases)}" failures="{bad["failures"]}" errors="{bad["errors"]}">'
    yield from cases
    yield "  </testsuite>"


def _failure(finding: Finding) -> str:
    span = finding.span
    where = f'line="{span.start_line}" column="{span.start_column + 1}"'
    name = f'name="lifetime.{finding.code}" classname="{_text(finding.path)}" {where}'
    text = f"{place(finding)}: {finding.code} {finding.message}"
    return f'    <testcase {name}><failure message="{_text(finding.message)}">{_text(text)}</failure></testcase>'


def _error(problem: Problem) -> str:
    name = f'name="lifetime" classname="{_text(problem.path)}" line="{problem.line}"'
    return f'    <testcase {name}><error message="{_text(problem.message)}"/></testcase>'


def _text(text: str) -> str:
    return escape(NOT_XML.sub("?", text))

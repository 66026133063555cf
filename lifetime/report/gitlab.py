"""Findings as a GitLab code quality report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

from lifetime.linter.model import Finding, Severity
from lifetime.linter.result import LintResult, Problem
from lifetime.report.lint_paths import from_root

SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.NOTE: "minor"}


def lines(result: LintResult, base: str = "") -> Iterator[str]:
    rows = [*(_finding(f, base) for f in result.findings), *(_problem(p, base) for p in result.problems)]
    yield json.dumps(rows, indent=2)


def _finding(finding: Finding, base: str) -> dict[str, object]:
    span = finding.span
    positions = {
        "begin": {"line": span.start_line, "column": span.start_column + 1},
        "end": {"line": span.end_line, "column": span.end_column + 1},
    }
    cell = f"cell {finding.cell}: " if finding.cell else ""
    return {
        "check_name": finding.code,
        "description": f"{finding.code}: {cell}{finding.message}",
        "severity": SEVERITIES[finding.severity],
        "fingerprint": finding.fingerprint,
        "location": {"path": from_root(finding.path, base), "positions": positions},
    }


def _problem(problem: Problem, base: str) -> dict[str, object]:
    path = from_root(problem.path, base)
    return {
        "check_name": "not-checked",
        "description": problem.message,
        "severity": "blocker",
        "fingerprint": sha256(f"{path}\0{problem.message}".encode()).hexdigest()[:16],
        "location": {"path": path, "lines": {"begin": max(1, problem.line)}},
    }

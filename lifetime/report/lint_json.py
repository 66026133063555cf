"""Findings as JSON: the contract that other programs read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from lifetime.linter.model import Edit, Finding, Fix, Span
from lifetime.linter.result import LintResult


def lines(result: LintResult) -> Iterator[str]:
    """One list, a finding an element."""
    yield json.dumps([row(f) for f in result.findings], indent=2)


def row(finding: Finding) -> dict[str, object]:
    cell = {"cell": finding.cell} if finding.cell else {}
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "path": finding.path,
        **cell,
        **position(finding.span),
        "function": finding.function,
        "message": finding.message,
        "fingerprint": finding.fingerprint,
        "fix": fix_row(finding.fix) if finding.fix else None,
        "evidence": dict(finding.evidence),
    }


def fix_row(fix: Fix) -> dict[str, object]:
    return {"title": fix.title, "safety": fix.safety.value, "why": fix.reason, "edits": [edit_row(e) for e in fix.edits]}


def edit_row(edit: Edit) -> dict[str, object]:
    return {**position(edit.span), "text": edit.text}


def position(span: Span) -> dict[str, object]:
    """Lines and columns 1-based, the end exclusive."""
    return {
        "line": span.start_line,
        "column": span.start_column + 1,
        "end_line": span.end_line,
        "end_column": span.end_column + 1,
    }


def statistics(result: LintResult) -> Iterator[str]:
    """One list, a rule an element, most findings first."""
    counts = Counter((f.code, f.name) for f in result.findings)
    fixable = Counter(f.code for f in result.findings if f.fix)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rows = [{"code": code, "name": name, "count": n, "fixable": fixable[code]} for (code, name), n in ranked]
    yield json.dumps(rows, indent=2)

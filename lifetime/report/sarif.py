"""Findings as SARIF 2.1.0, with repository-relative URIs and our own fingerprints: code scanning tracks them across commits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from lifetime.linter.model import Finding, Fix, Severity, Span
from lifetime.linter.result import LintResult, Problem
from lifetime.report.lint_paths import uri

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def lines(result: LintResult, base: str = "", pages: Mapping[str, str] | None = None, version: str = "") -> Iterator[str]:
    """One SARIF log. `pages` holds the rules' pages by code."""
    driver = {"name": "lifetime", "version": version, "rules": _rules(result, pages or {})}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "the root of the repository"}}},
        "invocations": [_invocation(result, base)],
        "results": [_result(finding, base) for finding in result.findings],
    }
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rules(result: LintResult, pages: Mapping[str, str]) -> list[dict[str, object]]:
    names = dict(sorted((finding.code, finding.name) for finding in result.findings))
    return [_rule(code, name, pages.get(code, "")) for code, name in names.items()]


def _rule(code: str, name: str, page: str) -> dict[str, object]:
    summary, _, rest = page.partition("\n\n")
    row: dict[str, object] = {"id": code, "name": name, "shortDescription": {"text": summary or name}}
    if rest:
        row["fullDescription"] = {"text": summary}
        row["help"] = {"text": page}
    return row


def _result(finding: Finding, base: str) -> dict[str, object]:
    fixes = {"fixes": [_fix(finding, finding.fix, base)]} if finding.fix and not finding.cell else {}
    where: dict[str, object] = {"physicalLocation": _location(finding, base)}
    if finding.function:
        where["logicalLocations"] = [{"fullyQualifiedName": finding.function, "kind": "function"}]
    return {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [where],
        "partialFingerprints": {"lifetime/v1": finding.fingerprint},
        **fixes,
        "properties": {"evidence": dict(finding.evidence), **({"cell": finding.cell} if finding.cell else {})},
    }


def _location(finding: Finding, base: str) -> dict[str, object]:
    """A line of a notebook's cell is no line of its file: there the file is all that can be said."""
    where: dict[str, object] = {"artifactLocation": artifact(finding.path, base)}
    return where if finding.cell else {**where, "region": region(finding.span)}


def artifact(path: str, base: str) -> dict[str, object]:
    found = uri(path, base)
    return {"uri": found} if found.startswith("file:") else {"uri": found, "uriBaseId": ROOT}


def region(span: Span) -> dict[str, object]:
    """SARIF counts from 1 and, like us, ends after the last character."""
    return {
        "startLine": span.start_line,
        "startColumn": span.start_column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _fix(finding: Finding, fix: Fix, base: str) -> dict[str, object]:
    replacements = [{"deletedRegion": region(e.span), "insertedContent": {"text": e.text}} for e in fix.edits]
    text = f"{fix.title} (unsafe: {fix.reason})" if fix.reason else fix.title
    change = {"artifactLocation": artifact(finding.path, base), "replacements": replacements}
    return {"description": {"text": text}, "artifactChanges": [change]}


def _invocation(result: LintResult, base: str) -> dict[str, object]:
    notes = [_notification(problem, base) for problem in result.problems]
    return {"executionSuccessful": not notes, **({"toolExecutionNotifications": notes} if notes else {})}


def _notification(problem: Problem, base: str) -> dict[str, object]:
    where: dict[str, object] = {"artifactLocation": artifact(problem.path, base)}
    if problem.line:
        where["region"] = {"startLine": problem.line}
    return {"level": "error", "message": {"text": problem.message}, "locations": [{"physicalLocation": where}]}

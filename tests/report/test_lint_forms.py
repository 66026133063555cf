"""The forms of a lint result, whole."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest

from lifetime.linter.model import Edit, Finding, Fix, Safety, Severity, Span
from lifetime.linter.result import LintResult, Problem
from lifetime.report import github, gitlab, junit, lint_json, lint_text, sarif

UNSAFE = Fix("release the leaves", Safety.UNSAFE, (Edit(Span(3, 0, 3, 0), "x.grad = None\n"),), "they are read later")
HARVEST = Finding(
    code="LT001",
    name="uncleared-leaf-grad",
    severity=Severity.WARNING,
    path="pkg/a.py",
    span=Span(2, 11, 2, 17),
    function="F.backward",
    message="`.grad` of `x`, 100% <never> released",
    fingerprint="0123456789abcdef",
    fix=UNSAFE,
    evidence={"leaves": "x"},
    excerpt=("def backward(x):", "    return x.grad"),
    excerpt_line=1,
)
LONG = Finding(
    code="LT008",
    name="create-graph-backward",
    severity=Severity.ERROR,
    path="pkg/b.py",
    span=Span(1, 0, 3, 1),
    function=None,
    message="a cycle",
    fingerprint="fedcba9876543210",
    excerpt=("backward(", "\tüber=True,", ")", ""),
    excerpt_line=1,
)
CELL = Finding(
    code="LT001",
    name="uncleared-leaf-grad",
    severity=Severity.NOTE,
    path="n.ipynb",
    span=Span(1, 0, 1, 1),
    function=None,
    message="in a cell",
    fingerprint="00000000000000ff",
    cell=3,
)
RESULT = LintResult(
    (HARVEST, LONG, CELL), (Problem("pkg/c.py", "does not parse: bad", 7), Problem("/away/d.py", "is gone")), checked=3
)


def test_text() -> None:
    assert "\n".join(lint_text.lines(RESULT)) == (
        """\
pkg/a.py:2:12: LT001 `.grad` of `x`, 100% <never> released
  |
1 | def backward(x):
2 |     return x.grad
  |            ^^^^^^
  |
  = fix: release the leaves (`--fix --unsafe-fixes`: they are read later)

pkg/b.py:1:1: LT008 error: a cycle
  |
1 | backward(
  | ^^^^^^^^^
2 |     über=True,
  |     ^^^^^^^^^^
3 | )
  | ^
4 |
  |

n.ipynb:cell 3:1:1: LT001 note: in a cell
"""
    )


def test_colour_changes_no_text() -> None:
    import re

    coloured = "\n".join(lint_text.lines(RESULT, color=True))
    assert coloured != (plain := "\n".join(lint_text.lines(RESULT)))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def framed(line: str, start: int, end: int) -> list[str]:
    finding = Finding("LT1", "n", Severity.NOTE, "a.py", Span(1, start, 1, end), None, "m", excerpt=(line,), excerpt_line=1)
    return [text.partition(" | ")[2] for text in lint_text.finding_lines(finding)][2:4]


@pytest.mark.parametrize(
    ("line", "start", "end", "expected"),
    [
        ("\tx.grad", 1, 7, ["    x.grad", "    ^^^^^^"]),
        ("'数' + x.grad", 6, 12, ["'数' + x.grad", "       ^^^^^^"]),
        ("'e\u0301' + x.grad", 7, 13, ["'e\u0301' + x.grad", "      ^^^^^^"]),
        ("a\x0cb\x1b[31m x.grad", 9, 15, ["a b [31m x.grad", "         ^^^^^^"]),
        ("x" * 300 + " y.grad", 301, 307, ["x" * 39 + " y.grad", " " * 40 + "^^^^^^"]),
    ],
)
def test_the_caret_stands_under_what_it_means(line: str, start: int, end: int, expected: list[str]) -> None:
    assert framed(line, start, end) == expected


def test_json_counts_from_one() -> None:
    first, second, third = json.loads("\n".join(lint_json.lines(RESULT)))
    assert first == {
        "code": "LT001",
        "name": "uncleared-leaf-grad",
        "severity": "warning",
        "path": "pkg/a.py",
        "line": 2,
        "column": 12,
        "end_line": 2,
        "end_column": 18,
        "function": "F.backward",
        "message": "`.grad` of `x`, 100% <never> released",
        "fingerprint": "0123456789abcdef",
        "fix": {
            "title": "release the leaves",
            "safety": "unsafe",
            "why": "they are read later",
            "edits": [{"line": 3, "column": 1, "end_line": 3, "end_column": 1, "text": "x.grad = None\n"}],
        },
        "evidence": {"leaves": "x"},
    }
    assert second["fix"] is None and third["cell"] == 3


def test_an_empty_result_is_an_empty_list() -> None:
    assert json.loads("\n".join(lint_json.lines(LintResult()))) == []


def test_github() -> None:
    assert list(github.lines(RESULT, "sub")) == [
        "::warning title=lifetime (LT001),file=sub/pkg/a.py,line=2,endLine=2,col=12,endColumn=18::"
        "pkg/a.py:2:12: LT001 `.grad` of `x`, 100%25 <never> released%0A"
        "  fix: release the leaves (`--fix --unsafe-fixes`: they are read later)",
        "::error title=lifetime (LT008),file=sub/pkg/b.py,line=1,endLine=3::pkg/b.py:1:1: LT008 a cycle",
        "::notice title=lifetime (LT001),file=sub/n.ipynb::n.ipynb:cell 3:1:1: LT001 in a cell",
        "::error title=lifetime,file=sub/pkg/c.py,line=7::pkg/c.py: does not parse: bad",
        "::error title=lifetime,file=/away/d.py::/away/d.py: is gone",
    ]


def test_github_properties_cannot_be_broken_out_of() -> None:
    result = LintResult(problems=(Problem("a,b:c%\n.py", "x"),))
    assert list(github.lines(result)) == ["::error title=lifetime,file=a%2Cb%3Ac%25%0A.py::a,b:c%25%0A.py: x"]


def test_gitlab() -> None:
    rows = json.loads("\n".join(gitlab.lines(RESULT, "sub")))
    assert rows[0] == {
        "check_name": "LT001",
        "description": "LT001: `.grad` of `x`, 100% <never> released",
        "severity": "major",
        "fingerprint": "0123456789abcdef",
        "location": {"path": "sub/pkg/a.py", "positions": {"begin": {"line": 2, "column": 12}, "end": {"line": 2, "column": 18}}},
    }
    assert len({row["fingerprint"] for row in rows}) == len(rows) == 5


def test_junit() -> None:
    root = ElementTree.fromstring("\n".join(junit.lines(RESULT)))
    assert root.attrib == {"name": "lifetime", "tests": "5", "failures": "3", "errors": "2"}
    case = root.find("testsuite[@name='pkg/a.py']/testcase")
    assert case is not None and case.attrib == {"name": "lifetime.LT001", "classname": "pkg/a.py", "line": "2", "column": "12"}
    assert [failure.get("message") for failure in root.iter("failure")] == [finding.message for finding in RESULT.findings]
    assert len(list(ElementTree.fromstring("\n".join(junit.lines(LintResult()))).iter("testcase"))) == 1


def test_sarif() -> None:
    log = json.loads("\n".join(sarif.lines(RESULT, "sub", {"LT001": "LT001: a defect.\n\nWhy: because."}, "1.0")))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["version"] == "1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["LT001", "LT008"]
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].endswith("Why: because.")
    first, _, cell = run["results"]
    where = first["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "sub/pkg/a.py", "uriBaseId": "%SRCROOT%"}
    assert where["region"] == {"startLine": 2, "startColumn": 12, "endLine": 2, "endColumn": 18}
    assert first["partialFingerprints"] == {"lifetime/v1": "0123456789abcdef"}
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "x.grad = None\n"
    assert "region" not in cell["locations"][0]["physicalLocation"] and "fixes" not in cell
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert [note["message"]["text"] for note in notes] == ["does not parse: bad", "is gone"]
    assert notes[1]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///away/d.py"}
    assert not run["invocations"][0]["executionSuccessful"]

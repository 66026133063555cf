"""The flow rules against `fixtures/lint/flow`: a finding on every line that says `expect`, and on no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifetime.linter import fixer
from lifetime.linter.engine import check_source

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "lint" / "flow"
FILES = sorted(FOLDER.glob("*.py"))
CODES = ["LT001", "LT002", "LT005", "LT006"]
EXPECT = re.compile(r"#\s*expect:\s*(LT\d{3}(?:\s*,\s*LT\d{3})*)")
STAYS = {("captured.py", "LT002"), ("more_spellings.py", "LT001")}
"""A release that runs under a capture only has no mechanical fix, a harvest that may run again later has no safe place for one."""


def expected(source: str) -> set[tuple[int, str]]:
    lines = enumerate(source.splitlines(), 1)
    return {(n, code) for n, line in lines if (found := EXPECT.search(line)) for code in re.split(r"\s*,\s*", found[1])}


def found(source: str, name: str, codes: list[str]) -> set[tuple[int, str]]:
    return {(f.span.start_line, f.code) for f in check_source(source, name, select=codes)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_findings_are_those_expected(path: Path) -> None:
    source = path.read_text()
    assert found(source, path.name, CODES) == expected(source)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_fixed_sources_compile_are_clean_and_stay_as_they_are(path: Path) -> None:
    codes = ["LT001", "LT002"]
    fixed = fixer.fix_source(path.read_text(), path.name, select=codes, unsafe=True)[0]
    compile(fixed, path.name, "exec")
    assert {(path.name, code) for _, code in found(fixed, path.name, codes)} <= STAYS
    assert fixer.fix_source(fixed, path.name, select=codes, unsafe=True)[0] == fixed


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_fixes_are_black_stable(path: Path) -> None:
    black = pytest.importorskip("black")
    mode = black.Mode(string_normalization=False)
    source = black.format_str(path.read_text(), mode=mode)
    fixed = fixer.fix_source(source, path.name, select=["LT001", "LT002"], unsafe=True)[0]
    assert black.format_str(fixed, mode=mode) == fixed


def test_there_are_cases() -> None:
    assert len(FILES) >= 7 and sum(len(expected(p.read_text())) for p in FILES) > 50

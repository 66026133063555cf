"""The five rules about graphs, over sources whose `# expect:` comments say what they must find: every spelling, and its twin
that is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifetime.linter.engine import check_source

SOURCES = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "lint" / "graph").glob("*.py"))
CODES = ("LT004", "LT007", "LT008", "LT009", "LT010")
EXPECT = re.compile(r"# expect: (LT\d{3})")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_finds_what_is_marked_and_nothing_else(path: Path) -> None:
    source = path.read_text()
    marked = {(n, found[1]) for n, line in enumerate(source.splitlines(), 1) if (found := EXPECT.search(line))}
    said = {(f.span.start_line, f.code) for f in check_source(source, path.name, select=CODES)}
    assert marked, "a source without a mark tests half of a rule"
    assert said == marked

"""Plain in a pipe; wrapped and coloured on a terminal; NO_COLOR honoured."""

from __future__ import annotations

import io
import re

import pytest

from lifetime.report.clean import columns
from lifetime.report.terminal import painted, shown, wrapped
from lifetime.report.text import report_text
from tests.report.samples import many, report, rich_report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_pipe_gets_the_lines_as_they_are(narrow: None) -> None:
    lines = list(report_text(rich_report()))
    assert list(shown(lines, io.StringIO())) == lines


def test_a_terminal_gets_its_width_and_nothing_is_lost(narrow: None) -> None:
    lines = list(report_text(rich_report()))
    seen = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in shown(lines, Terminal())]
    assert max(map(columns, seen)) <= 50

    def letters(texts: list[str]) -> str:
        return re.sub(r"[\s│~]", "", "".join(texts))

    assert letters(seen) == letters(lines)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_it_is_not_wanted(narrow: None, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert "\x1b" not in "".join(shown(report_text(report()), Terminal()))


def whole(line: str) -> str:
    return painted(line, line)


def test_what_is_painted() -> None:
    assert whole("│    ↓ .grad_fn") == "│    \x1b[36m↓ .grad_fn\x1b[0m"
    assert whole("│      ~~~") == "│      \x1b[1;31m~~~\x1b[0m"
    assert whole("1 of 2  GROWING  1.0 KiB") == "\x1b[1;31m1 of 2  GROWING  1.0 KiB\x1b[0m"
    assert whole("  Owners: unknown") == "  \x1b[1mOwners\x1b[0m: unknown"
    assert whole("nothing of ours") == "nothing of ours"


def test_paint_goes_on_in_wrapped_lines_where_it_reached_the_end() -> None:
    line = "lifetime: 2 survivors: 2 growing (15.4 KiB, +2.6 KiB a step)"
    assert [painted(piece, line) for piece in wrapped(line, 40)] == [
        "\x1b[1mlifetime: 2 survivors: 2 growing (15.4\x1b[0m",
        "  \x1b[1mKiB, +2.6 KiB a step)\x1b[0m",
    ]
    hint = "  Hint: clear the list at the end of every step of it"
    assert [painted(piece, hint) for piece in wrapped(hint, 40)][1] == "    every step of it"


def test_the_trunk_goes_on_beside_wrapped_lines() -> None:
    lines = list(wrapped("│    Leaking: NO (a module lives as long as the program that made it)", 40))
    assert lines == [
        "│    Leaking: NO (a module lives as long",
        "│      as the program that made it)",
    ]
    assert list(wrapped("├─ a.very.long.module.path.of.some.Holder", 24)) == [
        "├─ a.very.long.module.",
        "│    path.of.some.Holder",
    ]


def test_the_worst_come_first_and_the_rest_is_a_count() -> None:
    lines = list(report_text(many(13), most=10))
    assert lines[0].startswith("lifetime: 13 survivors: 7 growing")
    assert sum(line.startswith("Leak fingerprint: ") for line in lines) == 10
    assert [line for line in lines if line.startswith("+ ")] == ["+ 3 more (120.0 MiB)"]


def test_a_number_is_not_cut_in_two_where_there_is_a_space() -> None:
    assert list(wrapped("1 of 3  GROWING  30.0 MiB in 6 storages, +5.0 MiB a step", 44))[1:] == ["  +5.0 MiB a step"]

"""What a keep comment excuses, and that nothing else excuses anything."""

from __future__ import annotations

import pytest

from lifetime.linter import fixer
from lifetime.linter.engine import check_source
from tests.linter.sources import HARVEST

LINES = HARVEST.splitlines()


def commented(row: int, comment: str) -> str:
    """The harvest with a comment behind one of its lines, counted from 1."""
    lines = list(LINES)
    lines[row - 1] += f"  {comment}"
    return "\n".join(lines) + "\n"


def codes(source: str) -> list[str]:
    return [finding.code for finding in check_source(source, "a.py")]


def test_the_harvest_is_found() -> None:
    assert codes(HARVEST) == ["LT001"]


@pytest.mark.parametrize("row", [11, 12, 13, 14])
def test_any_line_of_the_statement_will_do(row: int) -> None:
    assert codes(commented(row, "# lifetime: keep[LT001] the pool reuses them")) == []


@pytest.mark.parametrize(
    "comment",
    [
        "# lifetime: keep[LT001] reason",
        "# lifetime:keep[LT001] reason",
        "#lifetime: keep[ LT001 , LT006 ] reason",
        "# noqa  # lifetime: keep[LT001] reason",
        "# lifetime: keep[LT001] see issue #12  # noqa: E501",
        "# lifetime: keep[uncleared-leaf-grad] by name",
        "# lifetime: keep[LT001]: reason",
    ],
)
def test_forms_that_excuse(comment: str) -> None:
    assert "LT001" not in codes(commented(12, comment))


def test_a_comment_of_its_own_speaks_for_the_line_below() -> None:
    lines = [*LINES[:10], "        # lifetime: keep[LT001] the pool reuses them", *LINES[10:]]
    assert codes("\n".join(lines)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "# lifetime: keep",
        "# lifetime: keep the leaves",
        "# lifetime: keep[]",
        "# lifetime: keep[LT001]",
        "# lifetime: keep[LT001",
        "# lifetime: keep LT001 reason",
        "# lifetime: keep[*] reason",
        "# lifetime: keep[ALL] reason",
        "# lifetime: keep[LT] reason",
        "# lifetime: keep[LT002] another rule",
    ],
)
def test_malformed_ones_excuse_nothing_and_are_reported(comment: str) -> None:
    assert codes(commented(12, comment)) == ["LT001", "LT000"]


def test_another_statement_excuses_nothing() -> None:
    assert codes(commented(10, "# lifetime: keep[LT001] wrong line")) == ["LT000", "LT001"]
    assert codes(commented(15, "# lifetime: keep[LT001] wrong line")) == ["LT001", "LT000"]


def test_text_in_a_string_excuses_nothing() -> None:
    assert codes(HARVEST.replace("leaf.grad\n", 'leaf.grad or "# lifetime: keep[LT001] x"\n')) == ["LT001"]


def test_an_excuse_cannot_excuse_itself() -> None:
    assert codes("x = 1  # lifetime: keep[LT000] because\n") == ["LT000"]


def test_an_excuse_is_judged_only_where_its_rule_has_run() -> None:
    unused = "x = 1  # lifetime: keep[LT001] old\n"
    assert check_source(unused, "a.py", select=["LT000", "LT005"]) == ()
    assert [f.code for f in check_source(unused, "a.py", select=["LT000", "LT001"])] == ["LT000"]


FIXED = {
    "x = 1  # lifetime: keep[LT001] old\n": "x = 1\n",
    "x = 1 # why # lifetime: keep[LT001] old\n": "x = 1 # why\n",
    "x = 1  # lifetime: keep[LT001] old  # noqa\n": "x = 1  # noqa\n",
    "# lifetime: keep[LT001] old\nx = 1\n": "x = 1\n",
    "def f():\n    # lifetime: keep[LT001] old\n    pass\n": "def f():\n    pass\n",
    "# lifetime: keep[LT001] old": "",
    "x = 1  # lifetime: keep[LT001] old\r\ny = 2\r\n": "x = 1\r\ny = 2\r\n",
}


@pytest.mark.parametrize("source", FIXED, ids=repr)
def test_unused_ones_are_removed(source: str) -> None:
    assert fixer.fix_source(source, "a.py", select=["ALL"])[0] == FIXED[source]


def test_only_the_unused_code_of_several_goes() -> None:
    source = commented(12, "# lifetime: keep[LT005, LT001] reason")
    assert fixer.fix_source(source, "a.py")[0] == commented(12, "# lifetime: keep[LT001] reason")

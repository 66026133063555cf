"""Fixes: applied until none is left, whatever the line ends; refused when they do harm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lifetime.linter import excuse, fixer, loader
from lifetime.linter.check import Checked, Place
from lifetime.linter.edits import compatible, splice
from lifetime.linter.engine import check_source
from lifetime.linter.loader import Text
from lifetime.linter.model import Edit, Finding, Fix, Safety, Severity, Span
from lifetime.linter.module import Module
from tests.linter.sources import HARVEST, SECOND_ORDER

PLACE = Place("a.py", "", "a.py")


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Edit:
    return Edit(Span(*start, *end), text)


def fix(*edits: Edit, safety: Safety = Safety.SAFE) -> Fix:
    return Fix("change", safety, edits, "" if safety is Safety.SAFE else "because")


def test_edits_stand_in_positions_of_the_original() -> None:
    source = "one\ntwo\nthree\n"
    assert splice(source, [edit((3, 0), (3, 5), "3"), edit((1, 0), (1, 3), "ONE\nand")]) == "ONE\nand\ntwo\n3\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_stay_those_of_the_file(end: str) -> None:
    assert splice(f"a{end}b{end}", [edit((2, 0), (2, 0), "x\ny\n")]) == f"a{end}x{end}y{end}b{end}"


def test_only_line_ends_of_python_end_a_line() -> None:
    source = "a\x0cb\u2028c\x1cd\nnext\n"
    assert splice(source, [edit((2, 0), (2, 4), "NEXT")]) == "a\x0cb\u2028c\x1cd\nNEXT\n"


def test_an_edit_at_the_very_end() -> None:
    assert splice("a", [edit((1, 1), (1, 1), "b")]) == "ab"
    assert splice("a\n", [edit((2, 0), (2, 0), "b\n")]) == "a\nb\n"


def test_clashing_fixes_wait_and_equal_edits_do_not_clash() -> None:
    first = fix(edit((1, 0), (1, 5), "x"))
    overlapping = fix(edit((1, 4), (1, 8), "y"))
    same_import, other_place = fix(edit((1, 0), (1, 5), "x"), edit((3, 0), (3, 0), "z")), fix(edit((9, 0), (9, 1), ""))
    assert compatible([first, overlapping, same_import, other_place]) == [first, same_import, other_place]


def test_unsafe_fixes_only_when_asked_for() -> None:
    unsafe = fix(edit((1, 0), (1, 1), "b"), safety=Safety.UNSAFE)
    assert fixer.apply("a", [unsafe], unsafe=False) == "a"
    assert fixer.apply("a", [unsafe], unsafe=True) == "b"


def test_fixing_twice_changes_nothing() -> None:
    once, fixed = fixer.fix_source(HARVEST, "a.py", unsafe=True)
    assert [f.code for f in fixed] == ["LT001"] and "LT001" not in {f.code for f in check_source(once, "a.py")}
    assert fixer.fix_source(once, "a.py", unsafe=True) == (once, ())


Rules = Callable[[str], list[Fix]]


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rules], None]:
    """Puts one made-up rule in the place of all: a function from source to fixes, one a finding."""

    def install(rules: Rules) -> None:
        def examine(document: Text, place: Place, codes: object) -> Checked:
            loader.parse(document.source, "a.py")
            return Checked(tuple(finding(each) for each in rules(document.source)))

        monkeypatch.setattr(fixer, "examine", examine)

    return install


def finding(fix: Fix) -> Finding:
    """Each kind of change counts as a rule of its own."""
    (first, *_) = fix.edits
    return Finding(f"LT9{first.text}", "made-up", Severity.WARNING, "a.py", first.span, None, "", fingerprint=first.text, fix=fix)


def repaired(source: str) -> fixer.Repaired:
    return fixer.repair(Text(source), PLACE, {"LT900"}, unsafe=False)


def test_clashing_fixes_are_made_one_a_round(rule: Callable[[Rules], None]) -> None:
    def rules(source: str) -> list[Fix]:
        """Two changes of one word, which cannot both be made in one round."""
        first = [fix(edit((1, 0), (1, 3), "two"))] if source.startswith("one") else []
        second = [fix(edit((1, 2), (1, 8), "e - tri"))] if source == "one - two" else []
        third = [fix(edit((1, 3), (1, 9), " - four"))] if source == "two - two" else []
        return first + second + third

    rule(rules)
    assert repaired("one - two").document.source == "two - four"


def test_a_fix_that_breaks_the_file_is_refused_and_the_others_made(rule: Callable[[Rules], None]) -> None:
    def rules(source: str) -> list[Fix]:
        breaking, helping = fix(edit((1, 0), (1, 1), "(")), fix(edit((2, 0), (2, 1), "b"))
        return [breaking, helping] if "a" in source else [breaking]

    rule(rules)
    result = repaired("x = 1\na = 2\n")
    assert result.document.source == "x = 1\nb = 2\n"
    assert [p.line for p in result.checked.problems] == [1]


def test_a_fix_that_helps_nothing_is_refused(rule: Callable[[Rules], None]) -> None:
    rule(lambda source: [fix(edit((1, 0), (1, 0), "#\n"))])
    result = repaired("x = 1\n")
    assert result.document.source == "x = 1\n" and not result.fixed
    assert "does not help" in result.checked.problems[0].message


def test_an_encoding_that_lacks_a_character_refuses_the_fix(rule: Callable[[Rules], None]) -> None:
    rule(lambda source: [fix(edit((1, 4), (1, 5), "'€'"))] if "€" not in source else [])
    result = fixer.repair(Text("x = 1\n", "latin-1"), PLACE, {"LT900"}, unsafe=False)
    assert result.document.source == "x = 1\n" and result.checked.problems


KEPT = {
    SECOND_ORDER: "def step(loss):\n    loss.backward(create_graph=True)  # lifetime: keep[LT008] why\n",
    SECOND_ORDER.replace("True)", "True)  # noqa"): SECOND_ORDER.replace("True)", "True)  # noqa  # lifetime: keep[LT008] why"),
    SECOND_ORDER.replace("True)", "True)  # lifetime: keep[LT001] old"): SECOND_ORDER.replace(
        "True)", "True)  # lifetime: keep[LT001,LT008] old"
    ),
    "def f(x):\n    x.backward(create_graph=True, gradient='''\n''')\n": (
        "def f(x):\n    x.backward(create_graph=True, gradient='''\n''')  # lifetime: keep[LT008] why\n"
    ),
    "def f(x):\n    x.backward(create_graph=True, \\\n        inputs=x)\n": (
        "def f(x):\n    x.backward(create_graph=True, \\\n        inputs=x)  # lifetime: keep[LT008] why\n"
    ),
}


SOME = frozenset({"LT000", "LT001", "LT008"})


@pytest.mark.parametrize("source", KEPT, ids=lambda source: repr(source[-30:]))
def test_excuses_are_added_where_a_comment_can_stand(source: str) -> None:
    result = excuse.add(Text(source), PLACE, SOME, "why")
    assert result.document.source == KEPT[source]
    assert "LT008" not in {f.code for f in result.checked.findings}


def test_module_counts_lines_as_edits_do() -> None:
    import ast

    source = "a = 1\r\nb = '\x0c'\rc = 3\n"
    module = Module("a.py", source, ast.parse(source))
    assert [module.lines[node.lineno - 1][:1] for node in module.tree.body if isinstance(node, ast.Assign)] == ["a", "b", "c"]

"""A large source gives the same tree in pieces as whole."""

from __future__ import annotations

import ast

import pytest

from lifetime.errors import SourceError
from lifetime.linter import loader
from lifetime.linter.pieces import LARGE, pieces

BLOCK = (
    '@first\n@second(1)\nclass A:\n    """Text."""\n\n    def f(self):\n        return [1, 2]\n\n\n'
    "async def g():\n    pass\n\n\nx = 1\n"
)


def large(extra: str = "") -> str:
    block = BLOCK * (LARGE // (2 * len(BLOCK)))
    return block + extra + block + block


def shape(tree: ast.Module) -> list[object]:
    """Where every definition lies, and all of the last class."""
    last = next(n for n in reversed(tree.body) if isinstance(n, ast.ClassDef))
    return [*((type(n), n.lineno, n.end_lineno) for n in tree.body), ast.dump(last, include_attributes=True)]


def test_pieces_are_the_source_line_by_line() -> None:
    source = large()
    found = list(pieces(source))
    assert len(found) > 3
    assert "".join(p.lstrip("\n") if n else p for n, p in enumerate(found)) == source


@pytest.mark.parametrize(
    "extra",
    ["", 'TEXT = """\n' + "class B:\n" * 30_000 + '"""\n', "@third(\n    1,\n)\n" + "class C:\n    y = 2\n" * 20_000],
    ids=["plain", "definitions in a string", "a decorator over several lines"],
)
def test_the_tree_is_that_of_the_whole(extra: str) -> None:
    source = large(extra)
    assert shape(loader.parse(source, "a.py")) == shape(ast.parse(source))


def test_what_does_not_parse_names_its_line() -> None:
    source = large("def broken(:\n    pass\n")
    with pytest.raises(SourceError) as raised:
        loader.parse(source, "a.py")
    assert raised.value.line == source[: source.index("broken")].count("\n") + 1

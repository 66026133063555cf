"""Notebooks: findings in their cells, fixes that leave the rest of the file alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lifetime.errors import SourceError
from lifetime.linter import engine, loader
from lifetime.linter.job import Job, Mode, Task, run
from lifetime.linter.notebook import notebook
from lifetime.linter.places import Target

BACKWARD = ["for x in data:\n", "    loss(x).backward(create_graph=True)"]


def written(*cells: list[str] | str, kind: str = "code", indent: int = 1, end: str = "\n") -> str:
    rows: list[dict[str, object]] = [
        {"cell_type": kind, "metadata": {}, "source": cell, "outputs": [], "execution_count": None} for cell in cells
    ]
    content = {"cells": [{"cell_type": "markdown", "source": ["# é\n", "prose"]}, *rows], "metadata": {}, "nbformat": 4}
    return json.dumps(content, indent=indent, ensure_ascii=False) + end


def lint(tmp_path: Path, text: str) -> list[tuple[int, int, str]]:
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    result = engine.lint([str(file)], select=["LT008"])
    assert not result.problems
    return [(f.cell, f.span.start_line, f.excerpt[f.span.start_line - f.excerpt_line]) for f in result.findings]


def test_a_finding_stands_in_its_cell(tmp_path: Path) -> None:
    assert lint(tmp_path, written(["x = 1\n"], BACKWARD, ["y = 2"])) == [(3, 2, BACKWARD[1])]


def test_a_cell_may_be_one_string(tmp_path: Path) -> None:
    assert lint(tmp_path, written("".join(BACKWARD))) == [(2, 2, BACKWARD[1])]


@pytest.mark.parametrize(
    "magic",
    ["%matplotlib inline\n", "!pip list\n", "files = !ls\n", "t = %timeit -o f()\n", "data?\n", "?data\n", "  %time f()\n"],
)
def test_magics_are_no_python_and_no_problem(tmp_path: Path, magic: str) -> None:
    if magic.startswith(" "):
        magic = "if True:\n" + magic
    assert lint(tmp_path, written([magic, *BACKWARD]))[0][1] == 2 + magic.count("\n")


def test_cell_magics(tmp_path: Path) -> None:
    assert lint(tmp_path, written(["%%bash\n", "loss.backward(create_graph=True)"], ["%%time\n", *BACKWARD])) == [
        (3, 3, BACKWARD[1])
    ]


def test_top_level_await_is_python_here(tmp_path: Path) -> None:
    assert lint(tmp_path, written(["await f()\n", *BACKWARD])) == [(2, 3, BACKWARD[1])]


def test_a_percent_sign_at_the_start_of_a_line_may_be_an_operator() -> None:
    cell = ["x = (7\n", "% 3)\n"]
    assert notebook(loader.Text(written(cell)), "").source == "x = (7\n% 3)\n\n"


def test_a_syntax_error_names_its_cell(tmp_path: Path) -> None:
    file = tmp_path / "a.ipynb"
    file.write_text(written(["x = 1\n"], ["y = 2\n", "def f(:"]))
    assert [p.message.partition(": ")[0] for p in engine.lint([str(file)]).problems] == ["cell 3, line 2"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}', '"x"'])
def test_what_is_no_notebook_is_said(text: str) -> None:
    with pytest.raises(SourceError, match="is not a notebook"):
        notebook(loader.Text(text), "a.ipynb")


def test_other_languages_have_no_cells() -> None:
    text = '{"cells": [{"cell_type": "code", "source": "x <- 1"}], "metadata": {"kernelspec": {"language": "R"}}}'
    assert notebook(loader.Text(text), "").source == ""


@pytest.mark.parametrize(("indent", "end"), [(1, "\n"), (2, ""), (4, "\n")])
def test_a_fix_changes_its_cell_and_nothing_else(tmp_path: Path, indent: int, end: str) -> None:
    unused = ["%matplotlib inline\n", "x = 1  # lifetime: keep[LT008] old\n", "y = 'ü'"]
    before = written(["a = 1"], unused, BACKWARD, indent=indent, end=end)
    file = tmp_path / "a.ipynb"
    file.write_text(before, encoding="utf-8")
    run(Task(Target(str(file), "a.ipynb"), before.encode(), frozenset({"LT000", "LT008"})), Job(Mode.FIX))
    unused[1] = "x = 1\n"
    assert file.read_text(encoding="utf-8") == written(["a = 1"], unused, BACKWARD, indent=indent, end=end)

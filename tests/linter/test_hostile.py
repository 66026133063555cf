"""Input that means harm: every file is named and counted, the others are checked all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lifetime.linter import engine
from lifetime.linter.job import Job, Mode, Task, run
from lifetime.linter.notebook import notebook
from lifetime.linter.places import Target
from tests.linter.sources import SECOND_ORDER
from tests.linter.test_lint_command import Lint, lint, root

__all__ = ["lint", "root"]

DEEP = "[" * 200_000


@pytest.mark.parametrize(
    ("text", "says"),
    [(DEEP, "nests too deep"), ('{"cells":' * 50_000, "nests too deep"), ("[1]", "no list of cells"), ("{", "is not a notebook")],
)
def test_a_broken_notebook_costs_only_itself(lint: Lint, root: Path, text: str, says: str) -> None:
    (root / "b.ipynb").write_text(text)
    said = lint("a.py", "b.ipynb", "clean.py", "--select", "LT008")
    assert (said.code, said.out.count("LT008")) == (2, 1)
    assert "b.ipynb:" in said.err and says in said.err and "2 files checked" in said.err


def test_numbers_of_any_length_are_none_of_our_business(lint: Lint, root: Path) -> None:
    cell = {"cell_type": "code", "source": SECOND_ORDER}
    (root / "b.ipynb").write_text(json.dumps({"cells": [cell]})[:-1] + f',"x":{"9" * 10_000}}}')
    assert lint("b.ipynb", "--select", "LT008").code == 1


HARVEST = "def backward(fn, x, dy):\n    t = x.detach().requires_grad_()\n    fn(t).backward(dy)\n    g = t.grad\n    return g\n"


def fixed(tmp_path: Path, text: str) -> tuple[str, list[str]]:
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    task = Task(Target(str(file), "a.ipynb", True), file.read_bytes(), frozenset({"LT001"}))
    outcome = run(task, Job(Mode.FIX))
    return file.read_text(), [problem.message for problem in outcome.problems]


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
@pytest.mark.parametrize("separators", [None, (",", ":"), (" , ", " : ")])
@pytest.mark.parametrize("as_list", [True, False])
def test_only_the_source_of_the_cell_changes(
    tmp_path: Path, indent: int | str | None, separators: tuple[str, str] | None, as_list: bool
) -> None:
    def text(source: str) -> str:
        lines = source.splitlines(keepends=True) if as_list else source
        cells = [{"source": "x = 1.50", "cell_type": "code"}, {"cell_type": "code", "source": lines, "n": "é"}]
        return json.dumps({"cells": cells, "z": 1e3, "a": []}, indent=indent, separators=separators, ensure_ascii=False)

    after = HARVEST.replace("    return g\n", "    t.grad = None\n    return g\n")
    assert fixed(tmp_path, text(HARVEST)) == (text(after), [])


def test_a_notebook_with_a_key_twice_is_left_alone(tmp_path: Path) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": HARVEST}]})[:-1] + ', "metadata": {}, "metadata": {}}'
    after, problems = fixed(tmp_path, text)
    assert after == text
    assert problems == ["has the key 'metadata' twice: left alone"]


def test_nested_json_is_no_baseline_and_no_report(lint: Lint, root: Path) -> None:
    (root / "deep.json").write_text(DEEP)
    for option in ("--baseline", "--report"):
        said = lint("a.py", option, "deep.json")
        assert said.code == 2 and said.err.startswith("lifetime: deep.json")


def test_nested_toml_is_a_problem(lint: Lint, root: Path) -> None:
    (root / "pyproject.toml").write_text(f"x = {DEEP}")
    said = lint("a.py", "--select", "LT008")
    assert (said.code, said.out.count("LT008")) == (2, 1) and "pyproject.toml: " in said.err


def test_nested_json_in_the_cache_is_no_result(lint: Lint, root: Path) -> None:
    assert lint("a.py", "--select", "LT008").code == 1
    kept = list(root.rglob(".lifetime_cache/*/*.json"))
    assert kept
    for file in kept:
        file.write_text(DEEP)
    assert lint("a.py", "--select", "LT008").code == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pyproject.toml", []),
        (".gitignore", ["."]),
        ("known.json", ["--baseline", "known.json"]),
        ("known.json", ["--report", "known.json"]),
        ("b.py", ["b.py"]),
        ("b.py", ["--why", "b.py:1"]),
    ],
)
def test_a_pipe_is_named_and_never_read(root: Path, name: str, arguments: list[str]) -> None:
    os.mkfifo(root / name)
    command = [sys.executable, "-m", "lifetime", "lint", *(arguments if arguments == ["."] else ["a.py", *arguments])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    assert done.returncode == 2
    assert name in done.stderr and "is not a regular file" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_pipes_beside_the_sources_do_not_stop_the_rules(root: Path) -> None:
    os.mkfifo(root / "helper.py")
    (root / "a.py").write_text(f"import torch\nfrom helper import release\n{HARVEST}    release(t)\n")
    command = [sys.executable, "-m", "lifetime", "lint", "."]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=root)
    assert done.returncode in {0, 1}
    assert "1 special file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--output", "json=a.py", "a.py"], "a.py: an output would overwrite a source"),
        (["--output", "json=./clean.py", "a.py"], "clean.py: an output would overwrite a source"),
        (["--write-baseline", "a.py", "."], "a.py: an output would overwrite a source"),
        (["--output", "json=o", "--output", "sarif=./o", "a.py"], "two outputs go to this one file"),
        (["--jobs", "1000000", "a.py"], "more processes than this can use"),
        (["--jobs", "9" * 5000, "a.py"], "more processes than this can use"),
        (["--select", "", "a.py"], "names nothing"),
        (["--ignore", " , ", "a.py"], "names nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(lint: Lint, root: Path, arguments: list[str], says: str) -> None:
    said = lint(*arguments)
    assert said.code == 2 and says in said.err
    assert (root / "a.py").read_text() == SECOND_ORDER


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "says"),
    [("a.py >&-", "standard output is closed"), ("- <&-", "standard input is closed"), ("--select LT008 a.py 2>&-", "")],
)
def test_closed_streams(root: Path, command: str, says: str) -> None:
    done = subprocess.run(f"{sys.executable} -m lifetime lint {command}", shell=True, capture_output=True, text=True, cwd=root)
    assert "Traceback" not in done.stderr and says in done.stderr
    assert done.returncode == (2 if says else 1)
    assert says or "Found" not in done.stdout


def test_a_notebook_may_hold_any_number(tmp_path: Path) -> None:
    from lifetime.linter.loader import Text

    assert notebook(Text('{"cells": [], "x": ' + "9" * 10_000 + "}"), "a.ipynb").cells == ()
    assert not engine.lint([str(tmp_path)]).problems

"""Which rules run where: selectors, layers, the nearest pyproject.toml, per-file ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifetime.config import Resolver
from lifetime.errors import UsageError
from lifetime.linter.settings import Selection, selected

DEFAULT = selected(())
EVERY = selected((Selection(select=("ALL",)),))


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([Selection()], DEFAULT),
        ([Selection(select=("LT",))], EVERY),
        ([Selection(select=("LT001", "LT00"))], {c for c in EVERY if c.startswith("LT00")}),
        ([Selection(select=("uncleared-leaf-grad",))], {"LT001"}),
        ([Selection(ignore=("LT",))], set()),
        ([Selection(ignore=("LT001",))], DEFAULT - {"LT001"}),
        ([Selection(extend_select=("LT009",))], DEFAULT | {"LT009"}),
        ([Selection(select=("LT001",), ignore=("LT",))], {"LT001"}),
        ([Selection(select=("LT",), ignore=("LT00",))], {c for c in EVERY if not c.startswith("LT00")}),
        ([Selection(select=("LT001",), ignore=("LT001",))], set()),
        ([Selection(select=("LT001",)), Selection(ignore=("LT",))], set()),
        ([Selection(ignore=("LT001",)), Selection(select=("LT001",))], {"LT001"}),
        ([Selection(select=("LT001",)), Selection(extend_select=("LT005",))], {"LT001", "LT005"}),
    ],
)
def test_selection(layers: list[Selection], expected: set[str]) -> None:
    assert selected(tuple(layers)) == expected


@pytest.mark.parametrize("selector", ["LT999", "XX", "lt001", "", "LT0011", "uncleared"])
def test_a_selector_that_names_no_rule_is_refused(selector: str) -> None:
    with pytest.raises(UsageError, match="no rule"):
        selected((Selection(select=(selector,)),))


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)


def codes(resolver: Resolver, file: Path) -> frozenset[str]:
    return resolver.settings(str(file.parent)).codes(str(file))


def test_the_nearest_table_applies(tmp_path: Path) -> None:
    write(tmp_path, '[tool.lifetime]\nselect = ["LT001"]\n')
    write(tmp_path / "inner", '[tool.lifetime]\nselect = ["LT005"]\n')
    write(tmp_path / "inner/other", "[tool.black]\nline-length = 100\n")
    resolver = Resolver()
    found = [codes(resolver, tmp_path / where) for where in ("a.py", "sub/a.py", "inner/a.py", "inner/other/a.py")]
    assert found == [{"LT001"}, {"LT001"}, {"LT005"}, {"LT005"}] and not resolver.problems


def test_the_command_line_is_above_it(tmp_path: Path) -> None:
    write(tmp_path, '[tool.lifetime]\nselect = ["LT001", "LT005"]\n')
    assert codes(Resolver(Selection(ignore=("LT005",))), tmp_path / "a.py") == {"LT001"}


def test_per_file_ignores_and_excludes_are_relative_to_their_file(tmp_path: Path) -> None:
    table = '[tool.lifetime]\nselect = ["LT001", "LT005"]\nexclude = ["/gen"]\n'
    write(tmp_path, table + '[tool.lifetime.per-file-ignores]\n"tests/**" = ["LT001"]\n')
    resolver = Resolver()
    assert codes(resolver, tmp_path / "tests/deep/a.py") == {"LT005"}
    assert codes(resolver, tmp_path / "src/tests_a.py") == {"LT001", "LT005"}
    settings = resolver.settings(str(tmp_path / "gen"))
    assert settings.is_excluded(str(tmp_path / "gen/x.py")) and not settings.is_excluded(str(tmp_path / "src/gen/x.py"))


BROKEN = {
    "[tool.lifetime\n": "is not valid TOML",
    "x = \n": "is not valid TOML",
    "[tool.lifetime]\nselct = []\n": "unknown key: 'selct'",
    '[tool.lifetime]\nselect = "LT001"\n': "select is not a list of strings",
    "[tool.lifetime]\nselect = [1]\n": "select is not a list of strings",
    '[tool.lifetime]\nselect = ["LT999"]\n': "no rule 'LT999'",
    '[tool.lifetime]\nmin-severity = "fatal"\n': "min-severity is not one of error, warning, note",
    '[tool.lifetime]\nforce-exclude = "yes"\n': "force-exclude is not true or false",
    '[tool.lifetime]\nper-file-ignores = ["LT001"]\n': "per-file-ignores is not a table",
    '[tool.lifetime.per-file-ignores]\n"a.py" = ["LT999"]\n': "no rule 'LT999'",
    "[tool]\nlifetime = 3\n": "[tool.lifetime] is not a table",
    '[tool.lifetime]\noutput-format = "xml"\n': "output-format is not one of",
    "[tool.lifetime]\nselect = ['LT001']\nselect = []\n": "is not valid TOML",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: BROKEN[text])
def test_a_broken_table_is_a_problem_once_and_what_is_above_applies(tmp_path: Path, text: str) -> None:
    write(tmp_path, '[tool.lifetime]\nselect = ["LT001"]\n')
    write(tmp_path / "inner", text)
    resolver = Resolver()
    assert codes(resolver, tmp_path / "inner/a.py") == codes(resolver, tmp_path / "inner/sub/a.py") == {"LT001"}
    (problem,) = resolver.problems
    assert problem.path.endswith("inner/pyproject.toml") and BROKEN[text] in problem.message and "\n" not in problem.message


def test_a_pyproject_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe[tool]")
    resolver = Resolver()
    resolver.settings(str(tmp_path))
    assert len(resolver.problems) == 1

"""The cache: the same answer sooner, never another one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifetime.linter import cache, engine, loader, memo
from lifetime.linter import check as checking
from lifetime.linter.result import LintResult
from tests.linter.sources import HARVEST, SECOND_ORDER


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    cache._content.cache_clear()
    yield
    cache._content.cache_clear()


def lint(*, expect_work: bool, monkeypatch: pytest.MonkeyPatch) -> LintResult:
    """A cached run that fails when it works although it should not, or the other way round."""
    worked: list[str] = []
    examine = checking.examine

    def noted(*args: object) -> checking.Checked:
        worked.append("yes")
        return examine(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(checking, "examine", noted)
        result = engine.lint(["."], cache=".lifetime_cache")
    assert bool(worked) is expect_work
    return result


def test_the_second_run_gives_the_same_without_working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER + HARVEST + "x = 1  # lifetime: keep\n")
    first = lint(expect_work=True, monkeypatch=monkeypatch)
    assert {f.code for f in first.findings} == {"LT000", "LT001", "LT008"}
    assert lint(expect_work=False, monkeypatch=monkeypatch) == first
    assert engine.lint(["."]) == first


def test_a_change_of_the_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    lint(expect_work=True, monkeypatch=monkeypatch)
    (tmp_path / "a.py").write_text(SECOND_ORDER.replace("True", "False"))
    assert not lint(expect_work=False, monkeypatch=monkeypatch).findings, "the gate alone answers"
    (tmp_path / "a.py").write_text("\n" + SECOND_ORDER)
    assert lint(expect_work=True, monkeypatch=monkeypatch).findings[0].span.start_line == 3


def test_a_change_of_what_it_imports_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that clears the leaves excuses its caller; when it no longer does, the cached answer is void."""
    source = HARVEST.replace("        return grads", "        release(leaves)\n        return grads")
    (tmp_path / "a.py").write_text("from helper import release\n" + source)
    clears = "def release(leaves):\n    for leaf in leaves:\n        leaf.grad = None\n"
    (tmp_path / "helper.py").write_text(clears)
    assert "LT001" not in {f.code for f in lint(expect_work=True, monkeypatch=monkeypatch).findings}
    cache._content.cache_clear()
    (tmp_path / "helper.py").write_text("def release(leaves):\n    return None\n")
    assert "LT001" in {f.code for f in lint(expect_work=True, monkeypatch=monkeypatch).findings}


def test_other_rules_are_another_question(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER + "x = 1  # lifetime: keep\n")
    codes = [
        {f.code for f in engine.lint(["."], cache=".lifetime_cache", select=[c]).findings} for c in ("LT008", "LT000", "LT008")
    ]
    assert codes[0] == codes[2] == {"LT008"} and codes[1] == {"LT000"}


def test_nothing_is_stored_where_nothing_was_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    engine.lint(["."], cache=".lifetime_cache")
    assert not (tmp_path / ".lifetime_cache").exists()


def test_it_may_be_shared_between_checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").write_text("")
        (tmp_path / name / "a.py").write_text("import helper\n" + HARVEST)
        (tmp_path / name / "helper.py").write_text("")
    monkeypatch.chdir(tmp_path / "one")
    first = lint(expect_work=True, monkeypatch=monkeypatch)
    shutil.copytree(tmp_path / "one" / ".lifetime_cache", tmp_path / "two" / ".lifetime_cache")
    monkeypatch.chdir(tmp_path / "two")
    assert lint(expect_work=False, monkeypatch=monkeypatch) == first


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"loads": {}}', '{"loads": {}, "findings": [{}], "excused": 0}', "null", "\xff"]
)
def test_a_damaged_entry_is_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    first = lint(expect_work=True, monkeypatch=monkeypatch)
    (entry,) = (tmp_path / ".lifetime_cache").rglob("*.json")
    entry.write_text(damage, encoding="latin-1")
    assert lint(expect_work=True, monkeypatch=monkeypatch) == first


class Large:
    """Runs that count as large, and which files they read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, cache: str = ".lifetime_cache") -> tuple[LintResult, set[str]]:
        seen: set[str] = set()
        read = loader.read

        def noted(file: str) -> bytes:
            seen.add(Path(file).name)
            return read(file)

        with self.monkeypatch.context() as patch:
            patch.setattr(loader, "read", noted)
            patch.setattr(engine, "ALSO_PARSED", 0)
            patch.setattr(engine, "MANY", 0)
            return engine.lint(["."], cache=cache), seen


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Large:
    monkeypatch.setattr(memo, "SETTLED_NS", 0)
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    for name in ("b.py", "c.py"):
        (tmp_path / name).write_text("x = 1\n")
    return Large(monkeypatch)


def test_what_held_nothing_is_not_read_again(large: Large) -> None:
    first, read = large()
    assert read == {"a.py", "b.py", "c.py"} and len(first.findings) == 1 and first.by_bytes == 2
    assert large() == (first, {"a.py"})


def test_a_change_of_what_held_nothing_is_seen_even_at_the_same_size_and_time(tmp_path: Path, large: Large) -> None:
    large()
    before = (tmp_path / "b.py").stat()
    (tmp_path / "b.py").write_text(SECOND_ORDER[: before.st_size])
    os.utime(tmp_path / "b.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "b.py" in large()[1]
    (tmp_path / "c.py").write_text(SECOND_ORDER)
    assert len(large()[0].findings) == 2


def test_a_file_that_has_just_changed_is_not_trusted(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "SETTLED_NS", 10**12)
    large()
    assert large()[1] == {"a.py", "b.py", "c.py"}


def test_a_large_run_teaches_a_small_one_no_silence(tmp_path: Path, large: Large) -> None:
    """A small run parses what holds nothing, to name syntax errors; a large one that saw it first must not keep it from that."""
    (tmp_path / "b.py").write_text("def f(:\n")
    assert not large()[0].problems
    assert [p.path for p in engine.lint(["."], cache=".lifetime_cache").problems] == ["b.py"]


def test_it_marks_itself_as_a_cache_and_hides_from_git(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    engine.lint(["."], cache=".lifetime_cache")
    assert (tmp_path / ".lifetime_cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (tmp_path / ".lifetime_cache/.gitignore").read_text() == "*\n"
    for entry in (tmp_path / ".lifetime_cache").rglob("*.json"):
        assert str(tmp_path) not in json.dumps(json.loads(entry.read_text())), "no path of this machine in it"


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    (tmp_path / ".lifetime_cache").write_text("a file stands in the way")
    assert len(engine.lint(["."], cache=".lifetime_cache").findings) == 1

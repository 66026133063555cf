"""Many files over several processes: the same answers, and a worker that dies costs one file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lifetime.linter import engine, job, pool
from lifetime.linter.job import Job, Outcome, Task
from tests.linter.sources import HARVEST, SECOND_ORDER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="made-up workers need a fork")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pool, "WORTH_BYTES", 0)
    for number in range(12):
        (tmp_path / f"m{number}.py").write_text("\n" * number + SECOND_ORDER + HARVEST)
    (tmp_path / "broken.py").write_text("loss.backward(create_graph=True\n")
    return tmp_path


def test_the_answers_are_those_of_one_process(tree: Path) -> None:
    alone = engine.lint(["."], jobs=1)
    assert len(alone.findings) == 24 and len(alone.problems) == 1
    assert engine.lint(["."], jobs=3) == alone


def fatal(task: Task, how: Job) -> Outcome:
    if task.target.path == "m3.py":
        os._exit(9)
    return job.run(task, how)


def test_a_worker_that_dies_costs_one_file(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "run", fatal)
    result = engine.lint(["."], jobs=2)
    assert {p.path: p.message for p in result.problems}["m3.py"] == "the process that checked it died"
    assert {f.path for f in result.findings} == {f"m{n}.py" for n in range(12) if n != 3}


def test_few_files_start_no_process(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORTH_BYTES", 10**9)
    monkeypatch.setattr(pool, "_pool", lambda *_: pytest.fail("a pool for nothing"))
    assert len(engine.lint(["."], jobs=4).findings) == 24


def test_no_more_than_so_much_waits_in_memory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_BYTES", 1000)
    assert len(engine.lint(["."], jobs=2).findings) == 24

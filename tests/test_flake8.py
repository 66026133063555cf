"""The plugin, under flake8 where it is installed."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from lifetime.flake8_plugin import Plugin
from tests.linter.sources import HARVEST, SECOND_ORDER

MIXED = (
    SECOND_ORDER
    + "    loss.backward(create_graph=True)  # noqa: LT008\n    loss.backward(create_graph=True)  # lifetime: keep[LT008] x\n"
)


def test_rows_are_as_flake8_wants_them() -> None:
    (row,) = Plugin(ast.parse(HARVEST), "a.py", HARVEST.splitlines(keepends=True)).run()
    assert row[:2] == (12, 12) and row[2].startswith("LT001 ") and row[3] is Plugin


def test_a_failure_is_a_row_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from lifetime.linter import registry

    rule = next(rule for rule in registry.load() if rule.code == "LT008")
    monkeypatch.setattr(type(rule), "check", lambda self, module: 1 / 0)
    (row,) = Plugin(ast.parse(SECOND_ORDER), "a.py", [SECOND_ORDER]).run()
    assert row[2].startswith("LT999 could not be checked: rule LT008 crashed")


@pytest.mark.skipif(not importlib.util.find_spec("flake8"), reason="flake8 is not installed")
def test_flake8_shows_them_and_both_kinds_of_excuse_hold(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MIXED)
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "LT", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and [line[:16] for line in done.stdout.splitlines()] == ["a.py:2:5: LT008 "]

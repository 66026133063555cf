"""The table of tested versions: one truth for the doctor, the README and the package's classifiers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lifetime.heap import calibration, frames
from lifetime.tracer import tested
from lifetime.tracer.tested import TESTED, Ran

REPO = Path(__file__).parents[2]


def test_the_readme_shows_the_table() -> None:
    assert tested.table() in (REPO / "README.md").read_text(), f"the table is now:\n{tested.table()}"


def test_the_classifiers_name_what_was_run() -> None:
    named = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (REPO / "pyproject.toml").read_text()))
    assert named == {one.python for one in TESTED}


def test_the_oldest_torch_that_is_asked_for_was_run() -> None:
    (oldest,) = re.findall(r'"torch>=([\d.]+)"', (REPO / "pyproject.toml").read_text())
    assert oldest == min((one.torch for one in TESTED), key=lambda version: [int(part) for part in version.split(".")])


def test_what_reports_lack_here_is_what_the_table_says() -> None:
    lacks = {"counted owners": calibration.why_not(), "temporaries of running functions": frames.what_is_hidden()}
    told = tested.here()
    if told.startswith("yes"):
        assert told == "; reports lack ".join(["yes", *(name for name, why in lacks.items() if why)])


def test_other_versions_are_said_to_be_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "TESTED", (Ran("3.9", "1.13"),))
    assert tested.here().startswith("not on Python 3.")

"""The examples in the docstrings of the room are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import lifetime.report

MODULES = sorted(path.stem for path in Path(lifetime.report.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("name", [f"lifetime.report.{stem}" for stem in MODULES if stem != "__init__"] + ["lifetime.units"])
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0

"""In a notebook: reports draw themselves by formatters, the model knows nothing of it, a cell can be traced."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import lifetime
from tests.report.samples import report, survivor

shells = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")


@pytest.fixture
def shell() -> Iterator[Any]:
    found = shells.InteractiveShell.instance()
    found.run_line_magic("load_ext", "lifetime")
    yield found
    found.run_line_magic("unload_ext", "lifetime")
    shells.InteractiveShell.clear_instance()


def test_a_report_is_a_page_in_a_frame_and_text_beside_it(shell: Any) -> None:
    data, _ = shell.display_formatter.format(report())
    assert data["text/html"].startswith('<iframe sandbox="allow-scripts"') and "<script" not in data["text/html"]
    assert data["text/plain"].startswith("lifetime: 1 survivor: 1 growing")


def test_a_survivor_is_a_picture(shell: Any) -> None:
    data, _ = shell.display_formatter.format(survivor())
    found = re.fullmatch(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="[^"]*">', data["text/html"])
    assert found and base64.b64decode(found.group(1)).startswith(b"<?xml")
    assert "↓ .grad_fn" in data["text/plain"]


def test_unloading_takes_it_out_again() -> None:
    found = shells.InteractiveShell.instance()
    try:
        found.run_line_magic("load_ext", "lifetime")
        found.run_line_magic("unload_ext", "lifetime")
        data, _ = found.display_formatter.format(survivor())
        assert "text/html" not in data and "lifetime" not in found.magics_manager.magics["cell"]
    finally:
        shells.InteractiveShell.clear_instance()


def test_a_cell_is_traced_with_its_options(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    class Trace:
        report = report()

        def __init__(self, **options: object) -> None:
            asked.update(options)

        def __enter__(self) -> Trace:
            return self

        def __exit__(self, *_: object) -> None:
            asked["ran"] = shell.user_ns.get("seen")

    api = ModuleType("lifetime.tracer.api")
    api.trace = Trace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lifetime.tracer.api", api)
    value = shell.run_cell_magic("lifetime", "--step backward --steps 4", "seen = 41 + 1")
    assert value is Trace.report
    assert asked == {"step": "backward", "steps": 4, "warmup": 1, "show": False, "ran": 42}


def test_a_wrong_option_is_told_and_the_kernel_goes_on(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell_magic("lifetime", "--stepz", "1 / 0") is None
    assert "unrecognized arguments: --stepz" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "told"), [("--steps 0", "at least one step"), ("--step train", "names no module")])
def test_a_step_that_cannot_be_is_told_before_the_cell_runs(
    shell: Any, capsys: pytest.CaptureFixture[str], options: str, told: str
) -> None:
    assert shell.run_cell_magic("lifetime", options, "ran = True") is None
    assert told in capsys.readouterr().err and "ran" not in shell.user_ns


def test_a_cell_without_steps_says_how_to_name_one(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell_magic("lifetime", "", "seen = 1") is None
    assert "ended after 0 steps" in capsys.readouterr().err


def test_who_does_not_print_what_the_notebook_draws(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    held = {"tensor": torch.ones(3)}
    capsys.readouterr()
    assert lifetime.who(held["tensor"]) is not None
    assert capsys.readouterr().out == ""
    lifetime.who(held["tensor"], show=True)
    assert "['tensor']" in capsys.readouterr().out
    shell.run_line_magic("unload_ext", "lifetime")
    lifetime.who(held["tensor"])
    assert "['tensor']" in capsys.readouterr().out

"""Progress: on a terminal, after a moment, with rich and without; nothing at all in a pipe."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lifetime.report import progress as module
from lifetime.report.progress import Waiting, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(params=["rich", "plain"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal whose people have no patience."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "rich.console", None)
    else:
        pytest.importorskip("rich")
    return Terminal()


def drawn(stream: io.StringIO) -> str:
    with progress("reading", stream) as advance:
        for done in range(3):
            advance(done, 3)
    return stream.getvalue()


def test_a_terminal_is_told_and_erased(terminal: Terminal) -> None:
    told = drawn(terminal)
    assert "reading" in told and ("2 of 3" in told or "2/3" in told)
    assert "\x1b[K" in told.rpartition("3")[2] or "\x1b[2K" in told.rpartition("3")[2]


def test_a_pipe_and_a_dumb_terminal_get_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(io.StringIO()) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert drawn(terminal) == ""


def test_what_is_quickly_done_draws_nothing_and_imports_nothing() -> None:
    source = (
        "import io, sys; from lifetime.report.progress import progress\n"
        "class Terminal(io.StringIO):\n    isatty = lambda self: True\n"
        "stream = Terminal()\n"
        "with progress('x', stream) as advance: advance(1, 2)\n"
        "assert stream.getvalue() == '' and 'rich' not in sys.modules, stream.getvalue()"
    )
    subprocess.run([sys.executable, "-c", source], check=True, timeout=60)


def test_a_bar_starts_no_thread(terminal: Terminal) -> None:
    """The linter forks its workers only while there is no other thread."""
    before = threading.active_count()
    with progress("reading", terminal) as advance:
        advance(1, 2)
        assert threading.active_count() == before


def test_waiting_is_shown_until_it_is_stopped(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    told = threading.Event()

    def write(text: str) -> int:
        told.set()
        return io.StringIO.write(terminal, text)

    monkeypatch.setattr(terminal, "write", write)
    with Waiting("looking") as waiting:
        assert told.wait(10)
        waiting.stop()
        shown = terminal.getvalue()
        assert "looking" in shown
        assert terminal.getvalue() == shown, "nothing more after the stop"
        io.StringIO.write(terminal, "the report")
    assert terminal.getvalue().endswith("the report")


def test_nobody_waits_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        before = threading.active_count()
        with Waiting("looking"):
            assert threading.active_count() == before
        assert stream is None or stream.getvalue() == ""


PROGRAM = """
import torch
kept, weight = [], torch.ones(8, requires_grad=True)
for step in range(5):
    kept.append((weight * step).sum())
    kept[-1].backward()
print("the program's own")
"""
IMPATIENT = """
import sys
from lifetime.report import progress
progress.PATIENCE_S = 0.0
from lifetime.cli import main
sys.exit(main(["trace", "--fail-on", "never", "--step", "backward", "--steps", "4", "train.py"]))
"""


@pytest.mark.slow
def test_a_trace_on_a_terminal_says_that_it_looks_and_leaves_the_programs_output_alone(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    (tmp_path / "train.py").write_text(PROGRAM)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", IMPATIENT]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment) as done:
        os.close(theirs)
        told = "".join(iter(lambda: _read(ours), ""))
        assert done.stdout is not None and done.stdout.read() == b"the program's own\n"
    assert done.returncode == 0
    before, _, report = told.partition("1 survivor")
    assert "looking for holders" in before and "looking for holders" not in report


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, 65536).decode(errors="replace")
    except OSError:  # the other side is closed
        return ""

"""What the program does at the tracer's expense: signals, trace functions, closed descriptors, folders that go."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from lifetime.tracer.guard import guarded
from tests.tracer.test_trace import TRACE, trace

HARD = """
    import os, signal, sys, tempfile, torch
    lines = set()
    def follow(frame, event, arg):
        lines.add(frame.f_code.co_filename.rpartition("/")[2])
        return follow
    class Stop(Exception): pass
    def stop(*_): raise Stop
    seen = []
    os.register_at_fork(before=lambda: seen.append("fork"))
    signal.signal(signal.SIGCHLD, lambda *_: seen.append("child"))
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    KEPT = []
    def train(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss
    compiled = torch.compile(train, backend="eager")
    for n in range(3):
        KEPT.append(compiled(torch.full((2, 4), float(n))))
    os.closerange(3, 1000)
    os.chdir(folder := tempfile.mkdtemp())
    os.rmdir(folder)
    sys.settrace(follow)
    for n in range(6):
        KEPT.append(train(torch.full((2, 4), float(n))))
    assert sys.gettrace() is follow
    sys.settrace(None)
    try:
        print(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("no child")
    print(seen, sorted(lines & {"watch.py", "gcmode.py", "fork.py", "sites.py"}), flush=True)
    {end}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a fork is needed")
def test_a_program_that_makes_it_hard(tmp_path: Path) -> None:
    run = trace(tmp_path, HARD.replace("{end}", "sys.stdout.close()"), "--fail-on", "never")
    assert (run.code, run.out) == (0, "no child\n[] []\n"), run.err
    assert run.report is not None and len(run.report.steps) == 7 and "growing" in run.verdicts


@pytest.mark.skipif(sys.platform != "linux", reason="a fork is needed")
def test_the_report_is_there_before_the_program_ends_and_a_signal_ends_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(inspect.cleandoc(ENDLESS_LOOP))
    program = subprocess.Popen([*TRACE, "--format", "json", "-o", "r.json", "train.py"], cwd=tmp_path)
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "r.json").exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert (tmp_path / "r.json").exists()
        program.terminate()
        assert program.wait(60) == -signal.SIGTERM
    finally:
        program.kill()


ENDLESS_LOOP = """
    import signal, torch
    leaf, KEPT = torch.ones(2, requires_grad=True), []
    for n in range(8):
        KEPT.append((leaf * 2).sum())
        KEPT[-1].backward()
    signal.pause()
"""


class Stop(Exception):
    pass


def test_what_a_signal_handler_raises_goes_to_the_program() -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stop

    failed: list[Exception] = []
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stop):
            guarded(lambda: signal.raise_signal(signal.SIGUSR1), failed.append)()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert failed == []


def test_what_fails_in_our_own_work_does_not() -> None:
    from lifetime.files import write_whole

    failed: list[Any] = []
    guarded(write_whole, failed.append)("/dev/null/no", "")
    assert len(failed) == 1


def test_trace_and_profile_functions_rest_and_are_put_back() -> None:
    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        return follow

    seen: list[Any] = []
    before = sys.gettrace(), sys.getprofile()
    sys.settrace(follow)
    sys.setprofile(follow)
    try:
        guarded(lambda: seen.extend((sys.gettrace(), sys.getprofile())), seen.append)()
        after = sys.gettrace(), sys.getprofile()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert (seen, after) == ([None, None], (follow, follow))


FOLLOWED = """import torch
from torch import nn
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
kept = []
def step():
    kept.append(model(torch.ones(3, 4)))
    kept[-1].sum().backward()
    optimizer.step()
for _ in range(9):
    step()
last = 1
"""


def test_a_program_keeps_its_coverage(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FOLLOWED)
    coverage = [sys.executable, "-m", "coverage"]
    traced = ["-m", "lifetime", "trace", "--fail-on", "never", "program.py"]
    subprocess.run([*coverage, "run", "--include=*program.py", *traced], cwd=tmp_path, check=True, capture_output=True)
    told = subprocess.run([*coverage, "report", "-m"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert " 100%" in told, told

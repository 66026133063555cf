"""A child that hangs, dies, writes or waits: the parent gets an answer or a reason, and its world stays as it was."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from lifetime.heap import fence
from lifetime.heap.fork import ChildError, fork


def ask(work: Callable[[], Any], deadline_s: float = 10.0, sealed: bool = True) -> Any:
    return fork(work, deadline_s=deadline_s, sealed=sealed).wait()


def test_the_answer_comes_back_whole() -> None:
    assert ask(lambda: b"x" * 5_000_000) == b"x" * 5_000_000


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda: time.sleep(60), "deadline: no answer in"),
        (os.abort, "killed by SIGABRT"),
        (lambda: os._exit(3), "ended without an answer"),
        (lambda: sys.exit(1), "SystemExit"),
        (lambda: 1 // 0, "ZeroDivisionError in the forked child"),
        (lambda: threading.Lock(), "pickle"),
    ],
)
def test_no_answer_has_a_reason(work: Callable[[], Any], why: str) -> None:
    with pytest.raises(ChildError, match=why):
        ask(work, deadline_s=1.0)


def test_no_zombie_is_left() -> None:
    child = fork(lambda: 1, deadline_s=10.0)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    child.wait()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def forbidden(folder: Path) -> list[Callable[[], Any]]:
    (folder / "there").write_text("kept")
    return [
        lambda: (folder / "made").write_text("x"),
        lambda: (folder / "there").unlink(),
        lambda: os.rename(folder / "there", folder / "gone"),
        lambda: os.mkdir(folder / "made"),
        lambda: os.system(f"touch {folder}/made"),
        lambda: os.kill(os.getppid(), signal.SIGUSR1),
        lambda: socket.socket(),
        lambda: tempfile.mkdtemp(dir=folder),
        os.fork,
    ]


@pytest.mark.parametrize("which", range(9))
def test_a_sealed_child_cannot_reach_the_world(tmp_path: Path, which: int) -> None:
    with pytest.raises(ChildError, match="PermissionError"):
        ask(forbidden(tmp_path)[which])
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_finalizer_of_the_program_changes_nothing_outside(tmp_path: Path) -> None:
    class Writer:
        def __del__(self) -> None:
            (tmp_path / "written").write_text("x")

    held: list[Any] = [Writer(), tempfile.TemporaryDirectory(dir=tmp_path), (tmp_path / "log").open("w")]
    held[2].write("buffered once")
    ask(held.clear)
    assert {path.name for path in tmp_path.iterdir()} == {Path(held[1].name).name, "log"}
    held[2].close()
    assert (tmp_path / "log").read_text() == "buffered once"
    held[1].cleanup()


def test_a_connected_socket_stays_connected() -> None:
    here, there = socket.socketpair()
    ends = [here]
    ask(lambda: ends[0].close())
    there.settimeout(1.0)
    here.sendall(b"still here")
    assert there.recv(64) == b"still here"


def test_buffered_output_is_written_once(capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("once")
    ask(lambda: sys.stdout.flush())
    sys.stdout.flush()
    assert capfd.readouterr().out == "once"


def test_patience_interrupts_what_waits_for_ever() -> None:
    lock = threading.Lock()
    lock.acquire()  # as a thread that is gone in the child would have left it

    class Waits:
        def __del__(self) -> None:
            with lock:
                pass

    def work() -> str:
        held = [Waits(), Waits()]
        with fence.patience(0.05):
            held.clear()
        return f"{len(held)} left"

    assert ask(work) == "0 left"


def test_shared_memory_and_locks_of_other_processes_are_out_of_reach() -> None:
    lock, value = multiprocessing.Lock(), multiprocessing.Value("i", 1)
    tensor = torch.ones(4).share_memory_()

    def work() -> float:
        lock.acquire()
        value.value = 2
        tensor.fill_(5)
        return float(tensor.sum())

    assert ask(work) == 20
    assert lock.acquire(timeout=1.0), "the child's lock was its own"
    lock.release()
    assert (value.value, float(tensor.sum())) == (1, 4)


def test_a_large_shared_mapping_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifetime.heap.shared.LARGEST", 0)
    tensor = torch.ones(1024).share_memory_()
    with pytest.raises(ChildError, match="SIGSEGV"):
        ask(lambda: tensor.fill_(5) is None)
    assert float(tensor.sum()) == 1024


def test_the_program_does_not_notice_the_fork() -> None:
    seen: list[object] = []
    os.register_at_fork(before=partial(seen.append, "before"), after_in_parent=partial(seen.append, "after"))
    before = signal.signal(signal.SIGCHLD, lambda *_: seen.append("SIGCHLD"))
    try:
        assert ask(lambda: [*seen]) == []
        time.sleep(0.05)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert seen == []


def test_a_pipe_that_the_program_closed_is_told_and_what_it_opened_instead_is_left_alone(tmp_path: Path) -> None:
    child = fork(lambda: 1, deadline_s=10.0)
    descriptor = child._descriptor
    file = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)
    os.dup2(file, descriptor)
    assert child.ready()
    with pytest.raises(ChildError, match="the program closed the pipe"):
        child.wait()
    assert os.write(descriptor, b"mine") == 4
    os.close(descriptor)
    os.close(file)


def test_a_child_that_nobody_waits_for_any_more_ends() -> None:
    reading, writing = os.pipe()

    def work() -> None:
        os.write(writing, b"x")
        time.sleep(60)

    child = fork(work, deadline_s=60.0, keep=[writing])
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    child.end()
    assert os.read(reading, 1) == b"", "its end of this pipe is closed, as it has ended"
    os.close(reading)

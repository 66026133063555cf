"""A forked child that runs a function on a copy of the heap and sends back what it returned."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from lifetime.errors import CaptureError
from lifetime.heap import fence

T = TypeVar("T")
_HEAD = 8
"""Bytes of the length that goes before an answer: other processes may hold the pipe open, so its end says nothing."""

DEADLINE = "deadline"
"""How the message of a child that hung begins."""


class ChildError(CaptureError):
    """A child gave no answer. The message says why: no fork, the deadline, a signal, an exception."""


class Child(Generic[T]):
    """A running child, seen from the process that forked it."""

    def __init__(self, pid: int, descriptor: int, deadline: float) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._deadline = deadline
        self._seconds = deadline - time.monotonic()

    def fileno(self) -> int:
        """The descriptor that becomes readable when the answer begins."""
        return self._descriptor

    def wait(self) -> T:
        """What the function returned in the child.

        Raises:
            ChildError: the child raised, died or was killed at its deadline.
        """
        try:
            payload = self._read(int.from_bytes(self._read(_HEAD), "little"))
        finally:
            self.end()
        good, answer = pickle.loads(payload)
        if not good:
            raise ChildError(answer)
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """Kill the child if it still runs, and leave no zombie."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(OSError):  # the program may have reaped it with os.wait()
                os.waitpid(self.pid, 0)

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise ChildError(f"{DEADLINE}: no answer in {self._seconds:.1f} s")
            part = os.read(self._descriptor, min(count, 1 << 20))
            if not part:
                raise ChildError(self._obituary())
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _obituary(self) -> str:
        with suppress(OSError):
            status = os.waitpid(self.pid, 0)[1]
            if os.WIFSIGNALED(status):
                return f"the forked child was killed by {signal.Signals(os.WTERMSIG(status)).name}"
        return "the forked child ended without an answer"


def fork(work: Callable[[], T], *, deadline_s: float, keep: Iterable[int] = (), sealed: bool = False) -> Child[T]:
    """A child that runs `work` behind the fence and then ends; its answer is pickled.

    `keep`: descriptors that stay open in the child. `sealed`: the child frees objects, so finalizers must not reach the world.

    Raises:
        ChildError: this process cannot fork.
    """
    why = cannot_fork()
    if why:
        raise ChildError(why)
    reading, writing = os.pipe()
    deadline = time.monotonic() + deadline_s
    bound = threading.current_thread() is threading.main_thread()
    try:
        pid = _fork()
    except OSError as error:
        os.close(reading)
        os.close(writing)
        raise ChildError(f"fork failed: {error.strerror}") from None
    if pid == 0:
        _live(work, writing, {writing, *keep}, bound, sealed, deadline_s)
    os.close(writing)
    return Child(pid, reading, deadline)


def cannot_fork() -> str | None:
    """Why a fork is not to be tried here, or None."""
    if not hasattr(os, "fork"):
        return f"no fork on {sys.platform}"
    if _holds_infiniband():
        return "RDMA-registered memory (an open InfiniBand device) does not survive a fork"
    return None


def _fork() -> int:
    with warnings.catch_warnings():  # Python 3.12 warns where threads run; the child uses none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except RuntimeError as error:  # in a sub-interpreter
            raise ChildError(f"fork failed: {error}") from None


def _holds_infiniband() -> bool:
    with suppress(OSError):
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if os.readlink(link).startswith("/dev/infiniband/"):
                    return True
    return False


def _live(work: Callable[[], T], writing: int, keep: set[int], bound: bool, sealed: bool, deadline_s: float) -> None:
    """The whole life of the child; never returns into the frames of the parent."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(deadline_s) + 2)  # the parent kills at the deadline, unless it was killed first
        if bound:
            fence.die_with_parent()
        fence.quiet(keep)
        if sealed:
            fence.seal()
        payload = pickle.dumps((True, work()))
    except BaseException as error:  # whatever it is, it must not run on in the parent's frames
        payload = pickle.dumps((False, f"{type(error).__name__} in the forked child: {error}"))
    try:
        os.write(writing, len(payload).to_bytes(_HEAD, "little"))
        view = memoryview(payload)
        while view:
            view = view[os.write(writing, view[: 1 << 20]) :]
    finally:
        os._exit(0)

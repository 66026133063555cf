"""A forked child that runs a function on a copy of the heap and sends back what it returned.

Note [out of sight]: the program must not meet the child in `os.wait()`, nor hear of its end. So the process that it forks
forks another and ends at once; that one, the keeper, forks the worker, tells of its end, and ends it when nobody reads the
answer any more. Only the pipe connects the program with them. Children of children are forked plainly.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from lifetime.heap import fence, hidden
from lifetime.heap.answer import DEADLINE, Child, ChildError, obituary, send

__all__ = ["DEADLINE", "Child", "ChildError", "cannot_fork", "fork"]

T = TypeVar("T")
_LATE_S = 2
"""So much later than the parent a child looks at its own deadline: the parent may have been killed."""

_is_ours = False
"""This process is itself a child: nobody minds its children."""


@dataclass(frozen=True)
class _Task:
    """What a child is to do. `bound`: it ends with the process that forked it."""

    work: Callable[[], Any]
    writing: int
    sealed: bool
    deadline_s: float
    keep: set[int] = field(default_factory=set)
    bound: bool = True


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
    child: Child[T] = Child(reading, deadline_s)
    bound = threading.current_thread() is threading.main_thread()
    task = _Task(work, writing, sealed, deadline_s, {writing, *keep}, bound)
    try:
        if _is_ours:
            child.pid = _fork_plainly(task)
        else:
            _fork_out_of_sight(task)
    except OSError as error:
        child.end()
        raise ChildError(f"fork failed: {error.strerror}") from None
    except BaseException:  # a signal handler of the program raised
        child.end()
        raise
    finally:
        os.close(writing)
    return child


def cannot_fork() -> str | None:
    """Why a fork is not to be tried here, or None."""
    if not hasattr(os, "fork"):
        return f"no fork on {sys.platform}"
    if _holds_infiniband():
        return "RDMA-registered memory (an open InfiniBand device) does not survive a fork"
    return None


def _holds_infiniband() -> bool:
    with suppress(OSError):
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if os.readlink(link).startswith("/dev/infiniband/"):
                    return True
    return False


def _fork_plainly(task: _Task) -> int:
    pid = _fork()
    if pid == 0:
        try:
            fence.quiet(task.keep)
            _live(task)
        finally:
            os._exit(1)
    return pid


def _fork_out_of_sight(task: _Task) -> None:
    """See note [out of sight]."""
    with hidden.from_program():
        pid = _fork()
        if pid == 0:
            try:
                if _fork() == 0:
                    _keep(task)
            finally:
                os._exit(0)
        try:
            os.waitpid(pid, 0)
        finally:
            with suppress(OSError):  # a signal handler of the program raised: wait all the same
                os.waitpid(pid, 0)


def _fork() -> int:
    with warnings.catch_warnings():  # Python 3.12 warns where threads run; the child uses none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except RuntimeError as error:  # in a sub-interpreter
            raise ChildError(f"fork failed: {error}") from None


def _keep(task: _Task) -> NoReturn:
    """The whole life of the keeper: until the worker has ended, or is to end because nobody reads what it will say."""
    try:
        fence.quiet(task.keep)
        ended, open_while_alive = os.pipe()
        pid = _fork()
        if pid == 0:
            _live(task)
        os.close(open_while_alive)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(task.writing, 0)  # POLLERR, when the reading end is closed
        poll.poll(1000 * (task.deadline_s + _LATE_S))
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            send(task.writing, pickle.dumps((False, obituary(status))))
    finally:
        os._exit(0)


def _live(task: _Task) -> NoReturn:
    """The whole life of the child; never returns into the frames of the parent."""
    global _is_ours
    _is_ours = True
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(task.deadline_s) + _LATE_S)  # the parent kills at the deadline, unless it was killed first
        if task.bound:
            fence.die_with_parent()
        if task.sealed:
            fence.seal()
        payload = pickle.dumps((True, task.work()))
    except BaseException as error:  # whatever it is, it must not run on in the parent's frames
        payload = pickle.dumps((False, f"{type(error).__name__} in the forked child: {error}"))
    try:
        send(task.writing, payload)
    finally:
        os._exit(0)

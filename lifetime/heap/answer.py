"""The answer of a forked child, and the pipe that it comes through."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from contextlib import suppress
from typing import Generic, TypeVar

from lifetime.errors import CaptureError

T = TypeVar("T")
_HEAD = 8
"""Bytes of the length that goes before an answer: other processes may hold the pipe open, so its end says nothing."""

DEADLINE = "deadline"
"""How the message of a child that hung begins."""


class ChildError(CaptureError):
    """A child gave no answer. The message says why: no fork, the deadline, a signal, an exception."""


class Child(Generic[T]):
    """A running child, seen from the process that forked it. `pid` is 0 where it is out of sight."""

    def __init__(self, descriptor: int, seconds: float) -> None:
        self.pid = 0
        self._descriptor = descriptor
        self._identity = _identity(descriptor)
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def ready(self) -> bool:
        """`wait` would not wait."""
        return not self._is_open() or self._readable(0)

    def wait(self) -> T:
        """What the function returned in the child.

        Raises:
            ChildError: the child raised, died or was killed at its deadline; or the program closed our pipe.
        """
        try:
            payload = self._read(int.from_bytes(self._read(_HEAD), "little"))
            good, answer = pickle.loads(payload)
        except (OSError, pickle.UnpicklingError) as error:
            raise ChildError(f"the answer could not be read: {error}") from None
        finally:
            self.end()
        if not good:
            raise ChildError(answer)
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the child if it still runs, and leave no zombie."""
        if self._is_open():
            os.close(self._descriptor)
        self._descriptor = -1
        if self.pid:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    def _is_open(self) -> bool:
        """The descriptor is still that of our pipe: a program may close all that it does not know, and open others."""
        return self._descriptor >= 0 and _identity(self._descriptor) == self._identity

    def _readable(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def _read(self, count: int) -> bytes:
        parts = []
        while count:
            if not self._is_open():
                raise ChildError("the program closed the pipe that the answer would have come through")
            left = self._deadline - time.monotonic()
            if left <= 0 or not self._readable(left):
                raise ChildError(f"{DEADLINE}: no answer in {self._seconds:.1f} s")
            part = os.read(self._descriptor, min(count, 1 << 20))
            if not part:
                raise ChildError(self._obituary())
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _obituary(self) -> str:
        with suppress(OSError):
            return obituary(os.waitpid(self.pid, 0)[1]) if self.pid else obituary(0)
        return obituary(0)


def send(writing: int, payload: bytes) -> None:
    os.write(writing, len(payload).to_bytes(_HEAD, "little"))
    view = memoryview(payload)
    while view:
        view = view[os.write(writing, view[: 1 << 20]) :]


def obituary(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"the forked child was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return "the forked child ended without an answer"


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        state = os.fstat(descriptor)
    except OSError:
        return None
    return state.st_dev, state.st_ino

"""The instant of a fork, hidden from the program: its at-fork handlers do not run, its SIGCHLD handler is not called."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_ROOM = 256
"""Bytes that hold a C `struct sigaction` anywhere; all zero it says SIG_DFL."""


def find_handlers() -> list[list[Any]]:
    """The interpreter's lists of at-fork handlers. Found once, at best early: gc must see them, and has little to see then."""
    if not _lists:
        markers = [_before, _in_child, _in_parent]
        os.register_at_fork(before=_before, after_in_child=_in_child, after_in_parent=_in_parent)
        _lists.extend(one for one in gc.get_referrers(*markers) if type(one) is list and one is not markers)
    return _lists


_lists: list[list[Any]] = []
_aside: list[list[Any]] = []
"""What the lists hold, while they are kept from it; in a child of such a fork for ever."""


def handlers() -> list[list[Any]]:
    """The lists that hold the program's at-fork handlers now."""
    return [*_lists, *_aside]


def _before() -> None: ...


def _in_child() -> None: ...


def _in_parent() -> None: ...


@contextmanager
def from_program() -> Iterator[None]:
    """In the body a fork runs only Python's own handlers, the end of a child raises no signal, and nothing is collected."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _handlers_aside(), _no_signal():
            yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _handlers_aside() -> Iterator[None]:
    before = [(one, list(one)) for one in find_handlers()]
    _aside[:] = [all_ for _, all_ in before]
    for handlers, all_ in before:
        handlers[:] = [one for one in all_ if _is_pythons(one)]
    try:
        yield
    finally:
        _aside.clear()
        for handlers, all_ in before:
            handlers[:] = all_


def _is_pythons(handler: Callable[[], object]) -> bool:
    """A handler of the standard library: they put locks right, before and after."""
    if isinstance(handler, (types.FunctionType, types.MethodType)):
        return handler.__module__.partition(".")[0] in sys.stdlib_module_names
    owner = handler.__self__ if isinstance(handler, types.BuiltinMethodType) else None
    return type(owner).__module__ == "_thread"


@contextmanager
def _no_signal() -> Iterator[None]:
    """SIGCHLD as it is by default, below what Python knows of it. Had a child of the program ended meanwhile, it is told after."""
    libc = ctypes.CDLL(None)
    default, before = (ctypes.create_string_buffer(_ROOM) for _ in range(2))
    had_ended = _has_ended()
    libc.sigaction(int(signal.SIGCHLD), default, before)
    try:
        yield
    finally:
        libc.sigaction(int(signal.SIGCHLD), before, None)
        if not had_ended and _has_ended():
            os.kill(os.getpid(), signal.SIGCHLD)


def _has_ended() -> bool:
    """A child has ended and nobody has asked yet."""
    with suppress(OSError, AttributeError):  # no children; no waitid on this platform
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return False

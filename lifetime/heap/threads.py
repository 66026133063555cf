"""What belongs to threads: `threading.local` namespaces, contexts, exceptions being handled.

Note [what a fork clears]: in the child of a fork the states of all other threads are cleared, and what only they own is freed
before anybody can look. So the parent gives these things one more reference each for the instant of the fork, a bare one that
gc does not see; the child keeps it for what nobody else holds, in the place of the thread.
"""

from __future__ import annotations

import _thread
import contextvars
import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lifetime.heap import peek, scan

Handled = tuple[str | None, int]
"""(name of the thread, None for the one that looks; address of the exception that it handles)."""

_HAMT = frozenset({"hamt", "hamt_bitmap_node", "hamt_array_node", "hamt_collision_node"})


@contextmanager
def held() -> Iterator[tuple[Handled, ...]]:
    """Holds, within the body, what a fork would free; gives the exceptions that are being handled."""
    _held.extend(_hold())
    try:
        yield tuple(_handled())
    finally:
        while _held:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(_held.pop()))


def let_go() -> None:
    """In the child: give back the references to what somebody else holds too, who is its holder then."""
    for address in _held:
        if ctypes.c_ssize_t.from_address(address).value > 1:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))
    _held.clear()


_held: list[int] = []
"""What has a reference of ours, by address."""


def namespaces(local: Any) -> list[dict[str, Any]]:
    """The dictionaries of a `threading.local`, one a thread."""
    return [space for table in tables(local) for space in table.values() if type(space) is dict]


def tables(local: Any) -> list[dict[Any, Any]]:
    """Where a `_thread._local` keeps its namespaces: by weak references to a dummy of each thread.

    Source: CPython 3.10 to 3.13, Modules/_threadmodule.c (`localobject.dummies`).
    """
    own = [one for one in gc.get_referents(local) if type(one) is dict]
    return [one for one in own if one and all(type(key) is weakref.ref for key in one)]


def is_local(thing: object) -> bool:
    return peek.is_a(thing, _thread._local)


def is_hamt(thing: object) -> bool:
    """Whether this is part of the tree in which contexts keep their variables."""
    return peek.qualname(type(thing)) in _HAMT


def variable_text(variable: contextvars.ContextVar[Any]) -> str:
    """How a context is asked for it."""
    return f"[<ContextVar {variable.name!r}>]"


def _hold() -> list[int]:
    if len(sys._current_frames()) == 1:
        return []
    kinds = {id(kind) for kind in (contextvars.Context, *_local_types())}
    things = scan.of_types(gc.get_objects(), kinds)
    things += [dummy() for one in things if is_local(one) for table in tables(one) for dummy in table]
    things += list(_exceptions().values())
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return [id(thing) for thing in things]


def _handled() -> list[Handled]:
    me = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [(None if ident == me else names.get(ident, f"thread {ident}"), id(error)) for ident, error in _exceptions().items()]


def _exceptions() -> dict[int, BaseException]:
    """The exception that each thread handles; on 3.10 and 3.11 it comes with its type and traceback."""
    current: dict[int, Any] = {i: one[1] if type(one) is tuple else one for i, one in sys._current_exceptions().items()}
    return {ident: error for ident, error in current.items() if error is not None}


def _local_types() -> list[type]:
    found: list[type] = [_thread._local]
    for kind in found:  # grows as we go
        found += peek.subclasses(kind)
    return found

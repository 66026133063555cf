"""The variables of running functions, of every thread, as addresses: nothing is kept alive and nothing is written to a frame.

gc does not traverse running frames (CPython >= 3.11), and reading `f_locals` on 3.11 and 3.12 stores a snapshot in the frame
that keeps every local alive. So the parent only compares words; it never takes a reference.
Source: CPython 3.11, Include/internal/pycore_frame.h (`_PyInterpreterFrame`) and Include/cpython/frameobject.h.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

WORD = 8
_FRAME, _LOCALS, _STACKTOP = 24, 72, 64
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STACK = "<stack>"


@dataclass(frozen=True)
class Running:
    """A running function: `frame` is the address of its frame object, `slots` are (variable, address of its value).

    `thread` is the thread's name, None for the one that looks. A cell variable's value is the cell.
    """

    frame: int
    function: str
    where: str
    thread: str | None
    slots: tuple[tuple[str, int], ...]


def running() -> tuple[Running, ...]:
    """Every running function but our own, innermost first. Empty where `supported()` says no."""
    if not supported():
        return ()
    me = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, top in sys._current_frames().items():
        name = None if ident == me else names.get(ident, f"thread {ident}")
        found += [_running(frame, name) for frame in _stack(top)]
        del top
    return tuple(found)


def supported() -> bool:
    """Whether this interpreter's frames lie in memory as this file says: shown on a frame of our own, once."""
    global _works
    if _works is None:
        _works = sys.version_info[:2] == (3, 11) and ctypes.sizeof(ctypes.c_void_p) == WORD and _self_test()
    return _works


_works: bool | None = None


def slots(frame: FrameType) -> list[tuple[str, int]]:
    """The variables of any frame, running or finished, and the addresses of their values; none where that is not supported."""
    return list(_slots(id(frame), frame.f_code)) if supported() else []


def names_of(code: CodeType) -> list[str]:
    """The variables in the order of their slots: locals, cells that are no arguments, free variables."""
    return [*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames), *code.co_freevars]


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OURS):
            yield frame
        frame = frame.f_back


def _running(frame: FrameType, thread: str | None) -> Running:
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    where = f"{code.co_filename}:{frame.f_lineno}"
    return Running(id(frame), function, where, thread, tuple(_slots(id(frame), code)))


def _slots(frame: int, code: CodeType) -> Iterator[tuple[str, int]]:
    inner = ctypes.c_void_p.from_address(frame + _FRAME).value
    if not inner:
        return
    names = names_of(code)
    top = ctypes.c_int.from_address(inner + _STACKTOP).value
    count = top if len(names) < top <= len(names) + code.co_stacksize else len(names)
    words = (ctypes.c_void_p * count).from_address(inner + _LOCALS)
    for index in range(count):
        address = words[index]
        if address:
            yield names[index] if index < len(names) else STACK, address


def _self_test() -> bool:
    marker, other = object(), [object()]
    slots = dict(_slots(id(sys._getframe()), sys._getframe().f_code))
    return slots.get("marker") == id(marker) and slots.get("other") == id(other)

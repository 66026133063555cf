"""The variables of running functions, of every thread, as addresses: nothing is kept alive and nothing is written to a frame.

gc does not traverse running frames, and reading `f_locals` before CPython 3.13 stores a snapshot in the frame that keeps every
local alive. So the parent only compares words; it never takes a reference.
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
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STACK = "<stack>"


@dataclass(frozen=True)
class Layout:
    """Where a frame object keeps its variables, as offsets in bytes.

    `inner` leads to the interpreter's own frame, None where the variables lie in the frame object itself; `variables` begin there,
    and `top` counts them and the temporaries after them, None where only the interpreter's loop knows that while it runs.
    `cells_of_arguments`: an argument that a closure uses has a slot of its own for its cell.
    """

    inner: int | None
    variables: int
    top: int | None
    cells_of_arguments: bool = False


_IN_FRAME = Layout(None, 352, None, cells_of_arguments=True)
"""Source: CPython 3.10, Include/cpython/frameobject.h (`struct _frame`: `f_localsplus` after twenty blocks)."""
_BEHIND_FRAME = Layout(24, 72, 64)
"""Source: CPython 3.11, 3.12 and 3.13, Include/internal/pycore_frame.h (`_frame.f_frame`, then `_PyInterpreterFrame.localsplus` and
`.stacktop`: the fields before them change places, and together keep their size)."""
LAYOUTS = {(3, 10): _IN_FRAME, (3, 11): _BEHIND_FRAME, (3, 12): _BEHIND_FRAME, (3, 13): _BEHIND_FRAME}
"""By minor version of CPython. Since 3.14 the slots hold tagged words, which this does not read."""


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
    """Whether this interpreter's frames lie in memory as `LAYOUTS` says: shown on frames of our own, once."""
    global _works
    if _works is None:
        _works = layout() is not None and _self_test()
    return _works


_works: bool | None = None


def layout() -> Layout | None:
    """The layout for this interpreter, None where none is known.

    A build that keeps more in the head of each object, free-threaded or with reference tracing, has other offsets.
    """
    is_plain = sys.implementation.name == "cpython" and object.__basicsize__ == 2 * WORD
    return LAYOUTS.get(sys.version_info[:2]) if is_plain else None


def what_is_hidden() -> str | None:
    """What of running functions cannot be seen here, in a sentence, or None."""
    known = layout()
    if known is None or not supported():
        return "this Python's frames cannot be read from outside: a tensor that only a running function holds has no holder"
    if known.top is None:
        return "this Python does not tell the temporaries of running functions: arguments of a call under way are not seen"
    return None


def slots(frame: FrameType) -> list[tuple[str, int]]:
    """The variables of any frame, running or finished, and the addresses of their values; none where that is not supported."""
    return list(_slots(id(frame), frame.f_code)) if supported() else []


def names_of(code: CodeType) -> list[str]:
    """The variables in the order of their slots: locals, cells, free variables."""
    known = layout()
    doubled = known is not None and known.cells_of_arguments
    return [*code.co_varnames, *(n for n in code.co_cellvars if doubled or n not in code.co_varnames), *code.co_freevars]


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
    known = layout()
    start = frame if known is None or known.inner is None else ctypes.c_void_p.from_address(frame + known.inner).value
    if known is None or not start:
        return
    names = names_of(code)
    top = 0 if known.top is None else ctypes.c_int.from_address(start + known.top).value
    count = top if len(names) < top <= len(names) + code.co_stacksize else len(names)
    words = (ctypes.c_void_p * count).from_address(start + known.variables)
    for index in range(count):
        address = words[index]
        if address:
            yield names[index] if index < len(names) else STACK, address


def _self_test() -> bool:
    """Every sort of variable of a function that runs: a local, an argument and a local that a closure uses, a free variable."""
    free = object()

    def known(argument: object) -> bool:
        shared = [argument]
        local = object()

        def inner() -> object:
            return argument, shared, free

        cells = zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True)
        expected = {"local": id(local), "inner": id(inner), **{name: id(cell) for name, cell in cells}}
        # No variable for the frame: it would be a cycle, and keep the variables of all callers until the next collection.
        return expected.items() <= dict(_slots(id(sys._getframe()), sys._getframe().f_code)).items()

    return known(object())

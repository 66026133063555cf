"""Run a program as `__main__` and end it as Python does: exit codes, tracebacks, threads that are still running."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from lifetime.tracer.program import Program, Rewrite

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INTERRUPTED = 130


def execute(program: Program, rewrite: Rewrite, on_error: Callable[[BaseException], None]) -> int:
    """The program's exit code. Its traceback is printed as Python prints it, without frames of this package.

    `on_error` sees an uncaught exception before it is printed. Threads that are not daemons are waited for.
    """
    ending = _run(program, rewrite)
    if isinstance(ending, SystemExit):
        ending = _exit_code(ending)
    elif isinstance(ending, BaseException):
        ending = _uncaught(ending, on_error)
    _wait_for_threads()
    return ending


def _run(program: Program, rewrite: Rewrite) -> int | BaseException:
    main = program.main_module()
    try:
        code = program.code(rewrite)
    except (SyntaxError, ValueError, OSError) as error:
        return error
    try:
        exec(code, vars(main))
    except BaseException as error:
        return error  # told outside, or whatever its hook raises would be told as raised while handling this
    return 0


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1


def _uncaught(error: BaseException, on_error: Callable[[BaseException], None]) -> int:
    _hide_our_frames(error, set())
    kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    on_error(error)
    try:
        sys.excepthook(kind, error, trace)
    except Exception as broken:
        _hide_our_frames(broken, set())
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(kind, error, trace)
    if isinstance(error, KeyboardInterrupt):
        _die_of_interrupt_at_exit()
        return _INTERRUPTED
    return 1


def _hide_our_frames(error: BaseException | None, seen: set[int]) -> None:
    """Cut the frames of this package out of a traceback and out of those it was raised from."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _without_ours(error.__traceback__)
        _hide_our_frames(error.__cause__, seen)
        for part in getattr(error, "exceptions", ()) if isinstance(error, BaseException) else ():
            _hide_our_frames(part, seen)
        error = error.__context__


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    kept = [t for t in _walk(trace) if not t.tb_frame.f_code.co_filename.startswith(_OURS)]
    for entry, following in zip(kept, [*kept[1:], None], strict=False):
        entry.tb_next = following
    return kept[0] if kept else None


def _walk(trace: TracebackType | None) -> list[TracebackType]:
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries


def _wait_for_threads() -> None:
    """What the interpreter does before it ends; done here, so that steps in other threads are still seen.

    First what was registered for this moment: an executor's workers wait for work until `concurrent.futures` tells them to end.
    Source: CPython, Lib/threading.py, `_shutdown`.
    """
    with suppress(KeyboardInterrupt):
        for callback in reversed(getattr(threading, "_threading_atexits", ())):
            callback()
        while others := [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]:
            for thread in others:
                thread.join()


def _die_of_interrupt_at_exit() -> None:
    """Python ends by the signal itself, so that a shell sees an interrupt and not an exit code."""

    def die() -> None:
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)

    atexit.register(die)

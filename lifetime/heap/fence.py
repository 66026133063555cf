"""What a forked child may not do: reach a file, a process, a socket, a device, a lock of the parent, or the terminal.

Note [two fences]: `quiet` is for children that only look. `seal` adds an audit hook for those that free objects, where a
finalizer of the program may run. The hook is not cheap (each `id()` is an event), so the searching child goes without.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from lifetime.heap import shared

_aside: dict[str, Any] = {}
"""What the fence replaced, by the words that the program has for it. Letting go of it could free a tensor (a signal handler is
a closure) and spoil a proof."""

_FORBIDDEN = (
    "fcntl.", "ftplib.", "imaplib.", "mmap.", "nntplib.", "os.", "poplib.", "pty.", "shutil.", "signal.", "smtplib.",
    "socket.", "sqlite3.", "subprocess.", "syslog.", "telnetlib.", "tempfile.", "urllib.", "webbrowser.",
)  # fmt: skip
_HARMLESS = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.listxattr", "os.getxattr", "os.add_dll_directory"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PR_SET_PDEATHSIG = 1


def quiet(keep: Iterable[int]) -> None:
    """Cut this process off from the parent's world; only the file descriptors in `keep` still lead anywhere."""
    gc.disable()
    _null_descriptors(set(keep))
    _silence_python()
    _default_signals()
    _no_core_dump()
    _single_threaded_torch()


def aside() -> Iterator[tuple[str, object]]:
    """What the interpreter kept for the program, with the words that the program has for it."""
    yield from _aside.items()


def collect() -> None:
    """Collect garbage, what the program froze too, and run none of its callbacks."""
    callbacks = list(gc.callbacks)
    gc.callbacks.clear()
    gc.unfreeze()
    try:
        gc.collect()
    finally:
        gc.callbacks[:] = callbacks


def seal() -> None:
    """Forbid what a finalizer could do to the world outside. Cannot be undone: for processes that end soon."""
    shared.make_private()
    _drop_async_generators()
    sys.addaudithook(_forbid)
    for module, name in (("_multiprocessing", "sem_unlink"), ("_posixshmem", "shm_unlink")):
        if module in sys.modules:  # neither raises an audit event
            setattr(sys.modules[module], name, _refuse)


def _drop_async_generators() -> None:
    """An event loop brings a dropped async generator back, to close it later. Here there is no later."""
    loops = sys.modules.get("asyncio.base_events")
    hook = getattr(getattr(loops, "BaseEventLoop", None), "_asyncgen_finalizer_hook", None)
    if isinstance(hook, types.FunctionType):
        hook.__code__ = _nothing.__code__


def _nothing(self: object, generator: object) -> None:
    return None


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Interrupt, again and again, whatever Python code blocks in the body for `seconds`: a finalizer that waits for a lock.

    `lock.acquire`, `sleep` and endless loops give way to an exception raised by a signal handler; the interpreter drops
    what a finalizer raises and goes on freeing. C code that blocks for ever is left to the parent's deadline.
    """
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    except _Interrupted:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Interrupted(BaseException):
    """Not an Exception, so that a finalizer's `except Exception: retry` does not swallow it."""


def _interrupt(*_: object) -> None:
    raise _Interrupted


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError("a forked child of lifetime may not do this")


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        if isinstance(arguments[2], int) and arguments[2] & _WRITES:
            _refuse()
    elif event.startswith(_FORBIDDEN) and event not in _HARMLESS:
        _refuse()


def _put_aside(name: str, thing: object) -> None:
    """Keep it; in a child of a child what was put aside first."""
    _aside.setdefault(name, thing)


def _null_descriptors(keep: set[int]) -> None:
    """Point every other descriptor at /dev/null: buffered files flush when they are freed, sockets say goodbye."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in _open_descriptors() - keep - {null}:
        with suppress(OSError):
            os.dup2(null, descriptor, inheritable=False)
    os.close(null)


def _open_descriptors() -> set[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return {int(name) for name in os.listdir(folder)}
    return set(range(1024))


def _silence_python() -> None:
    _put_aside("sys.gettrace()", sys.gettrace())
    _put_aside("sys.getprofile()", sys.getprofile())
    sys.settrace(None)
    sys.setprofile(None)
    _put_aside("sys.unraisablehook", sys.unraisablehook)
    _put_aside("sys.excepthook", sys.excepthook)
    _put_aside("threading.excepthook", threading.excepthook)
    sys.unraisablehook = lambda _: None
    sys.excepthook = lambda *_: None
    threading.excepthook = lambda _: None


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError, ValueError):
            _put_aside(f"signal.getsignal({_signal(number)})", signal.signal(number, signal.SIG_DFL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else str(number)


def _no_core_dump() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _single_threaded_torch() -> None:
    """No parallel kernel (its threads stayed in the parent), no `__torch_function__` and no dispatch mode of the program."""
    torch.set_num_threads(1)
    for name in ("DisableTorchFunction", "_DisableTorchDispatch"):
        guard = getattr(torch._C, name, None)
        if guard is not None and name not in _aside:
            _aside[name] = guard()
            _aside[name].__enter__()


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that forked it ends (Linux; elsewhere nothing happens)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

"""The tracer's own work inside the program: what fails in it is ours, what the program's signal handlers raise is the program's.

While it runs the program's `sys.settrace` and `sys.setprofile` functions rest, and TorchDynamo lets it pass.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = ("site-packages", "dist-packages")

F = TypeVar("F", bound=Callable[..., Any])


def guarded(work: Callable[..., Any], fail: Callable[[Exception], None]) -> Callable[..., None]:
    """`work`, called from inside the program: `fail` gets what goes wrong in it, the program only what is its own."""

    @functools.wraps(work)
    def run(*args: Any) -> None:
        try:
            with undisturbed():
                work(*args)
        except Exception as error:
            if is_the_programs(error):
                raise
            fail(error)

    return unseen_by_dynamo(run, deep=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Without the functions that the program has set to follow every line. What is written in C stays (cProfile, coverage): put
    back it would not hear of the lines of running frames any more."""
    tracing = sys.gettrace() if _is_pythons(sys.gettrace()) else None
    profiling = sys.getprofile() if _is_pythons(sys.getprofile()) else None
    if profiling:
        sys.setprofile(None)
    if tracing:
        sys.settrace(None)
    try:
        yield
    finally:
        if tracing:
            sys.settrace(tracing)
        if profiling:
            sys.setprofile(profiling)


def _is_pythons(follower: object) -> bool:
    if follower is None:
        return False
    calls = (vars(kind).get("__call__") for kind in type(follower).__mro__)
    return isinstance(follower, (types.FunctionType, types.MethodType)) or isinstance(
        next(filter(None, calls), None), types.FunctionType
    )


def is_the_programs(error: BaseException) -> bool:
    """Whether code of the program raised it. Our work calls none: it was a signal handler, that came at this moment."""
    return any(map(_is_the_programs, _files(error.__traceback__)))


def unseen_by_dynamo(function: F, *, deep: bool = False) -> F:
    """`function`, marked: TorchDynamo stops at it and calls it as it is. `deep`: nor does it compile what is called in there."""
    vars(function)["_torchdynamo_disable"] = True
    compiler = sys.modules.get("torch._C._dynamo.eval_frame")
    if compiler is not None:  # else the program has no torch yet, and what is compiled later goes by the mark
        skip, default = compiler._FrameAction.SKIP, compiler._FrameAction.DEFAULT
        strategy = compiler._FrameExecStrategy(skip, skip if deep else default)
        compiler.set_code_exec_strategy(function.__code__, strategy)
    return function


def _files(trace: types.TracebackType | None) -> Iterator[str]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename
        trace = trace.tb_next


def _is_the_programs(file: str) -> bool:
    if file.startswith((_PACKAGE, "<frozen ", _torch())):
        return False
    return not file.startswith(_LIBRARY) or any(part in _INSTALLED for part in file.split(os.sep))


def _torch() -> str:
    torch = sys.modules.get("torch")
    return os.path.dirname(os.path.abspath(str(torch.__file__))) + os.sep if torch else _PACKAGE

"""What rewritten code of the traced program calls: `boundary` around the function that is one step, `watch` at a site.

Imported by that code under a name that no program can write, so it stays small and imports no torch of its own.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

MODULE = "lifetime.tracer.probe"
ALIAS = "@lifetime"

on_step: Callable[[], None] | None = None
"""What a returned step calls; set while a session is armed."""

on_mark: Callable[[], None] | None = None
"""What `lifetime.step()` calls; set while a session waits for it."""

on_watch: Callable[[str, Any], None] | None = None
"""What a watched expression is handed to; set while a session is armed."""

_running = threading.local()


def mark() -> None:
    """A step ends here, says the program itself."""
    if on_mark is not None:
        on_mark()


def watch(key: str, value: Any) -> Any:
    """`value` itself, after the session has seen it at the site `key`."""
    if on_watch is not None and not _compiling():
        on_watch(key, value)
    return value


def _compiling() -> bool:
    # A constant for TorchDynamo, which so traces `watch` as the identity that it is.
    import torch

    return torch.compiler.is_compiling()


def boundary(target: Any) -> Any:
    """`target` in a shell that reports its return: a function, a coroutine or generator function, a descriptor or any callable.

    Wrapped once: a name that is bound to the same function twice stays one step.
    """
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(boundary(target.__func__))
    if getattr(target, "__lifetime_step__", False) or not callable(target) or isinstance(target, type):
        return target
    if not inspect.isfunction(target):
        return _CallableStep(target)
    shell = functools.wraps(target)(_shell(target))
    shell.__lifetime_step__ = True  # type: ignore[attr-defined]
    return shell


def _shell(step: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(step):
        return _coroutine_shell(step)
    if inspect.isasyncgenfunction(step):
        return _async_generator_shell(step)
    if inspect.isgeneratorfunction(step):
        return _generator_shell(step)

    def shell(*args: Any, **kwargs: Any) -> Any:
        running = _running.__dict__
        if name in running:  # a step that calls itself is one step
            return step(*args, **kwargs)
        running[name] = True
        try:
            returned = step(*args, **kwargs)
        finally:
            del running[name]
        # The arguments would be held by this frame alone where the caller passed temporaries.
        del args, kwargs
        if on_step is not None:
            on_step()
        return returned

    name = str(id(step))
    return shell


def _coroutine_shell(step: Callable[..., Any]) -> Callable[..., Any]:
    async def shell(*args: Any, **kwargs: Any) -> Any:
        returned = await step(*args, **kwargs)
        del args, kwargs
        _report()
        return returned

    return shell


def _generator_shell(step: Callable[..., Any]) -> Callable[..., Any]:
    def shell(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        returned = yield from step(*args, **kwargs)
        del args, kwargs
        _report()
        return returned

    return shell


def _async_generator_shell(step: Callable[..., Any]) -> Callable[..., Any]:
    async def shell(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for item in step(*args, **kwargs):
            yield item
        del args, kwargs
        _report()

    return shell


class _CallableStep:
    """A step that is no plain function (a partial, a cached or a compiled one); everything but the call is the original's."""

    __lifetime_step__ = True

    def __init__(self, step: Callable[..., Any]) -> None:
        self.__wrapped__ = step
        self._shell = _shell(step)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._shell(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        bind = getattr(self.__wrapped__, "__get__", None)
        return self if bind is None or instance is None else _CallableStep(bind(instance, owner))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def _report() -> None:
    if on_step is not None:
        on_step()


# TorchDynamo stops at functions that carry this mark and calls them as they are.
_report._torchdynamo_disable = True  # type: ignore[attr-defined]

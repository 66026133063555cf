"""What a step is: a function that was named, what the program shows (`tracer.detect`), or where it calls `lifetime.step()`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from lifetime.errors import UsageError
from lifetime.tracer import probe
from lifetime.tracer.imports import Hook

_DETECTED = {None, "optimizer", "backward"}


class Steps:
    """`named` is a function's name or None. `missing` says what was wrong with it, once that is known."""

    def __init__(self, step: str | None) -> None:
        self.mode = step if step in _DETECTED else None
        self.named = None if step in _DETECTED else step
        self.missing = ""
        self._ends = ExitStack()

    @property
    def in_main(self) -> str | None:
        """The name that the program's own file must define."""
        if self.named is None or (":" in self.named and not self.named.startswith("__main__:")):
            return None
        return self.named.removeprefix("__main__:")

    def arm(self, hook: Hook, on_step: Callable[[], None], is_quiet: Callable[[], bool]) -> None:
        """From now on every step calls `on_step`, until `end`; while `is_quiet()`, steps need only be counted."""
        if self.named is not None:
            self._listen("on_step", on_step)
            self._wait_for_module(hook)
        else:
            hook.after("torch", lambda: self._detect(on_step, is_quiet))
            if self.mode is None:
                self._listen("on_mark", lambda: self._marked(on_step))

    def end(self) -> None:
        self._ends.close()

    def _listen(self, name: str, action: Callable[[], None]) -> None:
        setattr(probe, name, action)
        self._ends.callback(setattr, probe, name, None)

    def _detect(self, on_step: Callable[[], None], is_quiet: Callable[[], bool]) -> None:
        from lifetime.tracer.detect import Detector

        detector = Detector(self.mode, on_step, is_quiet)
        detector.install()
        self._ends.callback(detector.remove)

    def _marked(self, on_step: Callable[[], None]) -> None:
        """The program says itself where its steps end: from now on nothing else counts."""
        self.end()
        self._listen("on_mark", on_step)
        on_step()

    def _wait_for_module(self, hook: Hook) -> None:
        module, _, qualname = (self.named or "").rpartition(":")
        if self.in_main is None:
            self.missing = f"module {module!r} was never imported"
            hook.after(module, lambda: self._wrap(module, qualname))

    def _wrap(self, module: str, qualname: str) -> None:
        *outer, name = qualname.split(".")
        owner: Any = sys.modules.get(module)
        for part in outer:
            owner = getattr(owner, part, None)
        target = vars(owner).get(name, getattr(owner, name, None)) if hasattr(owner, "__dict__") else None
        if target is None:
            self.missing = f"module {module!r} defines no function {qualname!r}"
            return
        self.missing = ""
        setattr(owner, name, probe.boundary(target))


def check(step: str | None) -> None:
    """Refuse a name that cannot be one.

    Raises:
        UsageError: it is neither a name, a dotted name nor `module:qualname`.
    """
    parts = (step or "x").replace(":", ".", 1).split(".")
    if not all(part.isidentifier() for part in parts):
        raise UsageError(f"{step!r} is no step", "optimizer, backward, NAME, Class.method or module:qualname")

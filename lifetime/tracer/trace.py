"""A program, an armed session and the hooks between them: what `lifetime trace` does."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from lifetime.errors import UsageError
from lifetime.heap.model import Report
from lifetime.tracer import probe, run
from lifetime.tracer.imports import Hook
from lifetime.tracer.mark import mark_step
from lifetime.tracer.options import Options
from lifetime.tracer.program import Program
from lifetime.tracer.session import Session

Deliver = Callable[[Report], None]


class Trace:
    """Runs `program` under `options`; `deliver` gets the report once, as soon as it is ready."""

    def __init__(self, program: Program, options: Options, deliver: Deliver) -> None:
        self.program = program
        self.options = options
        self.deliver = deliver
        self.session = Session(options, program.command)
        self.hook = Hook()
        self._delivered = False
        self._exit = os._exit

    def run(self) -> int:
        """The program's own exit code.

        Raises:
            UsageError: the step that was named is not defined.
        """
        self._arm()
        code = run.execute(self.program, self._rewrite, self._on_error)
        if self.session.here:
            self.finish()
        return code

    def finish(self) -> None:
        """Disarm, collect what the forked child saw, deliver. The second call does nothing."""
        if self.session.armed:
            self.session.disarm()
        if not self._delivered:
            self._delivered = True
            self.deliver(self.session.report())

    def _arm(self) -> None:
        session, hook, step = self.session, self.hook, self.options.step
        hook.install()
        session.on_disarm.append(hook.remove)
        if step in {None, "optimizer", "backward"}:
            hook.after("torch", self._detect)
            return
        probe.on_step = session.boundary
        session.on_disarm.append(_no_step)
        module, colon, qualname = (step or "").rpartition(":")
        if colon and module != "__main__":
            hook.after(module, lambda: _wrap_in_module(module, qualname))

    def _detect(self) -> None:
        from lifetime.tracer.detect import Detector

        detector = Detector(self.options.step, self.session.boundary)
        detector.install()
        self.session.on_disarm.append(detector.remove)

    def _rewrite(self, tree: ast.Module, source: bytes, path: str) -> ast.Module:
        step = self.options.step
        if step in {None, "optimizer", "backward"} or (":" in (step or "") and not (step or "").startswith("__main__:")):
            return tree
        name = (step or "").removeprefix("__main__:")
        if not mark_step(tree, name):
            raise UsageError(f"{path} defines no function {name!r}", "name a function as NAME, Class.method or module:qualname")
        return tree

    def _on_error(self, error: BaseException) -> None:
        self.session.disarm()


def _no_step() -> None:
    probe.on_step = None


def _wrap_in_module(module: str, qualname: str) -> None:
    *outer, name = qualname.split(".")
    owner: Any = sys.modules.get(module) or import_module(module)
    for part in outer:
        owner = getattr(owner, part, None)
    target = vars(owner).get(name, getattr(owner, name, None)) if owner is not None else None
    if target is None:
        raise UsageError(f"module {module!r} defines no function {qualname!r}", "name a function as module:qualname")
    setattr(owner, name, probe.boundary(target))

"""A program, an armed session and the hooks between them: what `lifetime trace` does."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from typing import NoReturn

from lifetime.errors import UsageError
from lifetime.heap.model import Report
from lifetime.tracer import probe, run
from lifetime.tracer.imports import Hook
from lifetime.tracer.loader import Rewriter
from lifetime.tracer.mark import mark_step
from lifetime.tracer.options import Options
from lifetime.tracer.program import Program
from lifetime.tracer.session import Session
from lifetime.tracer.spots import shown
from lifetime.tracer.steps import Steps

Deliver = Callable[[Report], None]


class Trace:
    """Runs `program` under `options`; `deliver` gets the report once, as soon as it is ready."""

    def __init__(self, program: Program, options: Options, deliver: Deliver) -> None:
        self.program = program
        self.deliver = deliver
        self.steps = Steps(options.step)
        self.session = Session(options, program.command)
        self.rewriter = Rewriter(options.sites)
        self.hook = Hook(self.rewriter)
        self.on_finish: list[Callable[[], None]] = []
        self._delivered = False

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
            self.session.gaps += self.rewriter.gaps
            self.deliver(self.session.report())
        while self.on_finish:
            self.on_finish.pop()()

    def _arm(self) -> None:
        self.hook.install()
        self.session.on_disarm.append(self.hook.remove)
        self.hook.after("torch", self._watch_sites)
        self.session.on_disarm.append(self.steps.arm(self.hook, self.session.boundary))
        self._report_before_a_hard_exit()

    def _report_before_a_hard_exit(self) -> None:
        """`os._exit` runs no `finally` and no exit handler; children of the program use it too and must not report."""
        leave = os._exit

        def exit_after_report(status: int) -> NoReturn:
            if self.session.here:
                self.finish()
            leave(status)

        os._exit = exit_after_report
        self.on_finish.append(lambda: setattr(os, "_exit", leave))

    def _watch_sites(self) -> None:
        from lifetime.tracer.sites import Sites

        self.session.sites = sites = Sites(self.rewriter.spots)
        self.session.on_disarm += [sites.reads.remove, lambda: setattr(probe, "on_watch", None)]
        probe.on_watch = sites.on_watch

    def _rewrite(self, tree: ast.Module, source: bytes, path: str) -> ast.Module:
        """The program's own file: its sites are watched, and the step is wrapped where it is defined there."""
        self.rewriter.rewrite(tree, source, os.path.abspath(path))
        name = self.steps.in_main
        if name and not mark_step(tree, name):
            raise UsageError(
                f"{shown(path)} defines no function {name!r}", "name a function as NAME, Class.method or module:qualname"
            )
        return tree

    def _on_error(self, error: BaseException) -> None:
        self.session.disarm()

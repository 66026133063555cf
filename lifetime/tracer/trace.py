"""An armed session and the hooks between it and the program: what `lifetime trace` and `lifetime.trace()` share."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from lifetime.errors import CaptureError, UsageError
from lifetime.heap.model import Report
from lifetime.tracer import probe, run
from lifetime.tracer.imports import Hook
from lifetime.tracer.loader import Rewriter
from lifetime.tracer.mark import mark_step
from lifetime.tracer.oom import is_out_of_memory
from lifetime.tracer.options import Options
from lifetime.tracer.program import Program
from lifetime.tracer.session import Session
from lifetime.tracer.spots import shown
from lifetime.tracer.steps import Steps

if TYPE_CHECKING:
    from lifetime.tracer.peak import Peak

Deliver = Callable[[Report, str], None]
"""Gets a report and the moment it speaks of: empty for the steps, `oom`, `peak`."""


class Trace:
    """Armed from `arm` to `finish`; `deliver` gets the report of the steps once, as soon as it is ready."""

    def __init__(self, options: Options, deliver: Deliver, command: Sequence[str] = ()) -> None:
        self.deliver = deliver
        self.steps = Steps(options.step)
        self.session = Session(options, command)
        self.rewriter = Rewriter(options.sites)
        self.hook = Hook(self.rewriter)
        self._peak: Peak | None = None
        self._leave = os._exit
        self._delivered = False

    def run(self, program: Program) -> int:
        """Run `program` to its end, and give its own exit code.

        Raises:
            UsageError: the step that was named is not defined.
        """
        self.arm()
        os._exit = self._report_and_leave
        code = run.execute(program, self._rewrite, self._on_error)
        if self.session.here:
            self.finish()
        return code

    def arm(self) -> None:
        self.hook.install()
        self.session.on_disarm.append(self.hook.remove)
        self.hook.after("torch", self._watch_sites)
        if self.session.options.at_peak:
            self.hook.after("torch", self._watch_peak)
        self.steps.arm(self.hook, self._on_step, self.session.is_quiet)

    def finish(self) -> None:
        """Disarm, collect what the forked child saw, deliver. The second call does nothing."""
        if self._delivered:
            return
        self._delivered = True
        self.session.disarm()
        self.steps.end()
        os._exit = self._leave
        self.rewriter.clean.save()
        self.session.gaps += [*self.rewriter.gaps, *self.rewriter.unmet()]
        try:
            self._deliver()
        except Exception as error:  # may run inside the program, whose failure this must not become
            self.session.failure = CaptureError(f"the report could not be made: {error!r}", "please report this")

    def _deliver(self) -> None:
        self.deliver(self.session.report(), "")
        fullest = self._peak.result() if self._peak else None
        if fullest is not None:
            self.deliver(self.session.report_of(fullest), "peak")

    def _on_step(self) -> None:
        """After the last step asked for, only this is left in the program, until the child that looks has answered."""
        session = self.session
        if session.is_quiet():
            session.seen += 1
            return
        if not session.here:
            return
        session.boundary()
        if session.armed:
            return
        if session.options.stop:
            self.finish()
            raise SystemExit(0)
        if session.ready:
            self.finish()

    def _report_and_leave(self, status: int) -> NoReturn:
        """`os._exit` runs no `finally` and no exit handler; children of the program use it too and must not report."""
        if self.session.here:
            self.finish()
        self._leave(status)

    def _on_error(self, error: BaseException) -> None:
        """An uncaught error, before it is printed: it still holds all that its frames hold."""
        if self.session.options.on_oom and self.session.here and "torch" in sys.modules and is_out_of_memory(error):
            from lifetime.tracer.heap import everyone

            self.deliver(self.session.report_of(everyone(self.session.options.deadline_s)), "oom")
        self.session.disarm()

    def _watch_peak(self) -> None:
        from lifetime.tracer.peak import Peak

        self._peak = Peak(self.session.options.deadline_s)
        self._peak.install()
        self.session.on_disarm.append(self._peak.remove)

    def _watch_sites(self) -> None:
        from lifetime.tracer.sites import Sites

        self.session.sites = sites = Sites(self.rewriter.spots)
        self.session.on_disarm += [sites.reads.remove, lambda: setattr(probe, "on_watch", None)]
        probe.on_watch = sites.on_watch

    def _rewrite(self, tree: ast.Module, source: bytes, path: str) -> ast.Module:
        """The program's own file: its sites are watched, and the step is wrapped where it is defined there."""
        with self.hook.aside():
            self.rewriter.rewrite(tree, source, os.path.abspath(path))
        name = self.steps.in_main
        if name and not mark_step(tree, name):
            help = "name a function as NAME, Class.method or module:qualname"
            raise UsageError(f"{shown(path)} defines no function {name!r}", help)
        return tree

"""An armed session and the hooks between it and the program: what `lifetime trace` and `lifetime.trace()` share."""

from __future__ import annotations

import _thread
import ast
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn

from lifetime.errors import CaptureError, UsageError
from lifetime.heap import hidden
from lifetime.heap.model import Report
from lifetime.tracer import probe, run
from lifetime.tracer.guard import guarded, unseen_by_dynamo
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

Waiting = Callable[[], AbstractContextManager[object]]
"""Entered where the program is over, or stands still, until the report is delivered."""


class Trace:
    """Armed from `arm` to `finish`; `deliver` gets the report of the steps once, as soon as it is ready."""

    def __init__(self, options: Options, deliver: Deliver, command: Sequence[str] = (), waiting: Waiting = nullcontext) -> None:
        self.deliver = deliver
        self._waiting = waiting
        self.steps = Steps(options.step)
        self.session = Session(options, command)
        self.rewriter = Rewriter(options.sites)
        self.hook = Hook(self.rewriter, self.rewriter.clean.__contains__)
        self._peak: Peak | None = None
        self._leave = os._exit
        self._delivered = False
        self._delivering = _thread.RLock()
        self._look = guarded(self._look_now, self.session.fail)

    def run(self, program: Program) -> int:
        """Run `program` to its end, and give its own exit code.

        Raises:
            UsageError: the step that was named is not defined.
        """
        self.arm()
        os._exit = self._report_and_leave
        code = run.execute(program, self._rewrite, self._on_error)
        if self.session.here:
            with self._waiting():
                self.finish()
        return code

    def arm(self) -> None:
        hidden.find_handlers()
        self.hook.install()
        self.session.on_disarm.append(self.hook.remove)
        self.hook.after("torch", self._watch_sites)
        if self.session.options.at_peak:
            self.hook.after("torch", self._watch_peak)
        self.steps.arm(self.hook, self._on_step, self.session.is_quiet)

    def finish(self) -> None:
        """Disarm, collect what the forked child saw, deliver. The second call does nothing but wait for the first."""
        with self._delivering:
            if not self._delivered:
                self._delivered = True
                self._stop()
                self._finish()

    def _stop(self) -> None:
        self.session.disarm()
        self.steps.end()

    def _finish(self) -> None:
        """Until the report is delivered the program cannot leave without it."""
        self.rewriter.clean.save()
        self.session.gaps += [*self.rewriter.gaps, *self.rewriter.unmet()]
        try:
            self._deliver()
        except Exception as error:  # may run inside the program, whose failure this must not become
            self.session.failure = CaptureError(f"the report could not be made: {error!r}", "please report this")
        finally:
            os._exit = self._leave

    def _deliver(self) -> None:
        self.deliver(self.session.report(), "")
        fullest = self._peak.result() if self._peak else None
        if fullest is not None:
            self.deliver(self.session.report_of(fullest), "peak")

    def _on_step(self) -> None:
        if self.session.is_quiet():
            self.session.seen += 1
        elif self.session.here:
            self._look()

    def _look_now(self) -> None:
        """After the last step asked for nothing of this is left in the program."""
        session = self.session
        session.boundary()
        if session.armed:
            return
        self._stop()
        if session.options.stop:
            with self._waiting():
                self.finish()
            raise SystemExit(0)
        # A program that never ends, or is ended by a signal, shall have its report: written as soon as the child has answered.
        # No thread of `threading`, which the program may count.
        with suppress(RuntimeError):  # no more threads: at the end, then
            _thread.start_new_thread(self.finish, ())

    def _report_and_leave(self, status: int) -> NoReturn:
        """`os._exit` runs no `finally` and no exit handler; children of the program use it too and must not report."""
        if self.session.here:
            self.finish()
        self._leave(status)

    def _on_error(self, error: BaseException) -> None:
        """An uncaught error, before it is printed: it still holds all that its frames hold."""
        if self.session.options.on_oom and self.session.here and "torch" in sys.modules and is_out_of_memory(error):
            from lifetime.tracer.heap import everyone

            options = self.session.options
            self.deliver(self.session.report_of(everyone(options.deadline_s, options.addresses)), "oom")
        self.session.disarm()

    def _watch_peak(self) -> None:
        from lifetime.tracer.peak import Peak

        options = self.session.options
        self._peak = Peak(options.deadline_s, self.session.fail, options.addresses)
        self._peak.install()
        self.session.on_disarm.append(self._peak.remove)

    def _watch_sites(self) -> None:
        from lifetime.tracer.sites import Sites

        unseen_by_dynamo(Trace._on_step, deep=True)
        self.session.sites = sites = Sites(self.rewriter.spots)
        self.session.on_disarm += [sites.reads.remove, lambda: setattr(probe, "on_watch", None)]
        probe.on_watch = guarded(sites.on_watch, self.session.fail)

    def _rewrite(self, tree: ast.Module, source: bytes, path: str) -> ast.Module:
        """The program's own file: its sites are watched, and the step is wrapped where it is defined there."""
        with self.hook.aside():
            self.rewriter.rewrite(tree, source, os.path.abspath(path))
        name = self.steps.in_main
        if name and not mark_step(tree, name):
            help = "name a function as NAME, Class.method or module:qualname"
            raise UsageError(f"{shown(path)} defines no function {name!r}", help)
        return tree

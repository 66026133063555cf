"""Where a trace's report goes, and what it makes of the exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable

from lifetime.errors import LifetimeError, UsageError
from lifetime.files import writable, write_whole
from lifetime.heap.model import Report, SiteVerdict, Verdict
from lifetime.report.progress import Waiting
from lifetime.report.records import read, to_json
from lifetime.report.terminal import shown
from lifetime.report.text import report_text
from lifetime.tracer import ranks
from lifetime.tracer.options import LEAST_BOUNDARIES
from lifetime.tracer.trace import Trace
from lifetime.units import plural

_HEADINGS: dict[str, tuple[str, ...]] = {
    "": (),
    "oom": ("lifetime: out of memory; who held what, all that was alive:",),
    "peak": ("lifetime: the fullest moment, before a backward; who held what, all that was alive:",),
}
_FAILING = {Verdict.GROWING, Verdict.UNTIL_GC}


class Outcome:
    """Where the report goes and what it makes of the exit code. Everything the command line can have wrong is found here,
    before the program starts."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        if chosen.format == "json" and not chosen.output:
            raise UsageError("--format json needs -o REPORT.json", "standard output belongs to the program")
        self.fail_on: str = chosen.fail_on
        self.quiet = chosen.format == "json"
        self.engine: str = chosen.engine
        self.output = writable(chosen.output, ranks.world_size() > 1) if chosen.output else ""
        self.pictures = [_drawable(writable(picture), chosen.engine) for picture in chosen.render]
        baseline = read(chosen.baseline).survivors if chosen.baseline else ()
        self.accepted = {survivor.fingerprint for survivor in baseline}
        self.report: Report | None = None
        self.failed: LifetimeError | None = None
        self._stderr = sys.stderr
        self._waiting = Waiting("lifetime: looking for holders")

    def wait(self) -> Waiting:
        """Says on a terminal that something goes on, until `deliver` has something to say."""
        return self._waiting

    def deliver(self, report: Report, moment: str) -> None:
        """Write and print; an error waits for the program's end, it must not surface inside the program.

        The report of another moment goes to files of its own: `report.oom.json` beside `report.json`.
        """
        self._waiting.stop()
        if not moment:
            self.report = report
        for act in (self._write, self._tell, self._draw):
            try:
                act(report, moment)
            except LifetimeError as error:
                self.failed = self.failed or error

    def _write(self, report: Report, moment: str) -> None:
        if self.output:
            write_whole(_of_moment(ranks.own_file(self.output), moment), to_json(report))

    def _tell(self, report: Report, moment: str) -> None:
        if not self.quiet:
            self._say((*_HEADINGS[moment], *report_text(report)))

    def _draw(self, report: Report, moment: str) -> None:
        if self.pictures:
            from lifetime.report.render import render_to

            for picture in self.pictures:
                note = render_to(report, _of_moment(ranks.own_picture(picture), moment), self.engine)
                if note and not self.quiet:
                    self._say([f"lifetime: {picture}: {note}"])

    def _say(self, lines: Iterable[str]) -> None:
        """To standard error as it was at the start: the program may have put another in its place. It may be closed, or its reader
        gone (`| head`)."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stderr.write("\n".join([*shown(lines, self._stderr), ""]))
            self._stderr.flush()

    def exit_code(self, trace: Trace, path: str) -> int:
        """For a program that ended with 0.

        Raises:
            LifetimeError: there is nothing to judge, or the report could not be written.
        """
        if ranks.world_size() > 1:
            return 0
        failed = self.failed or trace.session.failure
        if failed:
            raise failed
        if self.report is None or len(self.report.steps) < LEAST_BOUNDARIES:
            raise UsageError(*_too_few(trace, path))
        return int(self._fails(self.report))

    def _fails(self, report: Report) -> bool:
        if self.fail_on == "never":
            return False
        if self.fail_on == "confirmed" and any(site.verdict is SiteVerdict.CONFIRMED for site in report.sites):
            return True
        judged = (s for s in report.survivors if s.known is None and s.fingerprint not in self.accepted)
        return any(survivor.verdict in _FAILING for survivor in judged)


def _of_moment(path: str, moment: str) -> str:
    stem, ending = os.path.splitext(path)
    return f"{stem}.{moment}{ending}" if moment else path


def _drawable(picture: str, engine: str) -> str:
    """`picture` itself.

    Raises:
        UsageError: no form has its ending, or no engine here draws it.
    """
    from lifetime.report.render import check

    check(picture, engine)
    return picture


def _too_few(trace: Trace, path: str) -> tuple[str, str]:
    step, seen = trace.steps.named, trace.session.seen
    if trace.steps.missing:
        return trace.steps.missing, "name a function as NAME, Class.method or module:qualname"
    if step and seen < LEAST_BOUNDARIES:
        return f"the step {step!r} was {'called once' if seen else 'never called'}", "two steps are the least to compare"
    if "torch" not in sys.modules:
        return f"{path} never imports torch", "nothing to trace"
    help = "name the step: --step optimizer, --step backward or --step FUNCTION"
    return f"{path} ended after {plural(seen, 'step')}, too few to compare", help

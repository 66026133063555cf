"""`lifetime trace`: run a program and name who holds every tensor that outlives its step."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lifetime.errors import LifetimeError, UsageError
from lifetime.files import write_whole
from lifetime.heap.model import Report, SiteVerdict, Verdict
from lifetime.report.records import read, to_json
from lifetime.report.text import report_text
from lifetime.tracer import ranks
from lifetime.tracer.options import LEAST_BOUNDARIES, Options
from lifetime.tracer.program import Program, module, script
from lifetime.tracer.steps import check
from lifetime.tracer.trace import Trace
from lifetime.units import plural

_FAILING = {Verdict.GROWING, Verdict.UNTIL_GC}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lifetime trace",
        usage="lifetime trace [OPTIONS] SCRIPT [ARG...]\n       lifetime trace [OPTIONS] -m MODULE [ARG...]",
        description="Run a program and name who holds every tensor that outlives its step.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    add("--step", metavar="optimizer|backward|FUNCTION", help="where a step ends: NAME, Class.method or module:qualname")
    add("--warmup", type=_count, default=1, metavar="N", help="steps that are not judged (1)")
    add("--steps", type=_positive, default=6, metavar="N", help="steps to judge after warm-up (6)")
    add("--start-step", type=_count, default=0, metavar="N", help="steps to let pass before warm-up (0)")
    add("--stop", action="store_true", help="end the program once the report is made")
    add("--gc", choices=("as-is", "off"), default="as-is", help="off: no automatic collection during the observed steps")
    add("--site", action="append", default=[], metavar="PATH:LINE", help="watch only this site (repeatable)")
    add("--no-prove", action="store_true", help="do not try the cut")
    add("-o", dest="output", metavar="REPORT.json", help="write the report; of many ranks: a folder, one file a rank")
    add("--render", action="append", default=[], metavar="FILE", help="draw the report; the ending says how (repeatable)")
    add("--engine", choices=("auto", "dot", "pure", "builtin"), default="auto", help="what lays the picture out")
    add("--format", choices=("text", "json"), default="text", help="text on stderr, or the JSON of -o alone")
    add("--fail-on", choices=("growing", "confirmed", "never"), default="growing", help="what makes the exit code 1")
    add("--baseline", metavar="FILE", help="a report whose survivors are accepted")
    add("--deep", action="store_true", help="remember where tensors were made (slow)")
    add("--on-oom", action=argparse.BooleanOptionalAction, default=True, help="at out-of-memory, say who held the most")
    add("--at-peak", action="store_true", help="say who is alive at the step with the highest peak")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps")
    return int(text)


def _positive(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one step must be judged")
    return number


def split(argv: Sequence[str], parser: argparse.ArgumentParser) -> tuple[list[str], list[str]]:
    """Our options, and what follows them: the script or nothing (after `-m MODULE`), then the program's arguments."""
    takes_value = {name for action in parser._actions if action.nargs is None for name in action.option_strings}
    position = 0
    while position < len(argv):
        word = argv[position]
        if word == "--":
            return list(argv[:position]), list(argv[position + 1 :])
        if word == "-" or not word.startswith("-"):
            break
        position += 2 if word in takes_value else 1
        if word.startswith("-m") and not word.startswith("--"):
            break
    return list(argv[:position]), list(argv[position:])


def run(argv: Sequence[str]) -> int:
    arguments = parser()
    ours, rest = split(argv, arguments)
    chosen = arguments.parse_args(ours)
    outcome = Outcome(chosen)
    if not chosen.module and not rest:
        raise UsageError("no script to trace", "lifetime trace [OPTIONS] SCRIPT [ARG...]")
    check(chosen.step)
    program = module(chosen.module, rest) if chosen.module else script(rest[0], rest[1:])
    trace = Trace(_options(chosen), outcome.deliver, program.command)
    code = trace.run(program)
    return code if code or not trace.session.here else outcome.exit_code(trace, program)


def _options(chosen: argparse.Namespace) -> Options:
    return Options(
        step=chosen.step,
        warmup=chosen.warmup,
        steps=chosen.steps,
        start_step=chosen.start_step,
        stop=chosen.stop,
        gc=chosen.gc,
        sites=tuple(chosen.site),
        prove=not chosen.no_prove,
        deep=chosen.deep,
        on_oom=chosen.on_oom,
        at_peak=chosen.at_peak,
    )


class Outcome:
    """Where the report goes and what it makes of the exit code. Everything the command line can have wrong is found here,
    before the program starts."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        if chosen.format == "json" and not chosen.output:
            raise UsageError("--format json needs -o REPORT.json", "standard output belongs to the program")
        self.fail_on: str = chosen.fail_on
        self.quiet = chosen.format == "json"
        self.engine: str = chosen.engine
        self.output = _writable(chosen.output) if chosen.output else ""
        self.pictures = [_writable(picture) for picture in chosen.render]
        baseline = read(chosen.baseline).survivors if chosen.baseline else ()
        self.accepted = {survivor.fingerprint for survivor in baseline}
        self.report: Report | None = None
        self.failed: LifetimeError | None = None

    def deliver(self, report: Report) -> None:
        """Write and print; an error waits for the program's end, it must not surface inside the program."""
        self.report = report
        try:
            if not self.quiet:
                print("\n".join(report_text(report)), file=sys.stderr, flush=True)
            if self.output:
                write_whole(ranks.own_file(self.output), to_json(report))
            self._draw(report)
        except LifetimeError as error:
            self.failed = error

    def _draw(self, report: Report) -> None:
        if self.pictures:
            from lifetime.report.render import render_to

            for picture in self.pictures:
                render_to(report, ranks.own_picture(picture), self.engine)

    def exit_code(self, trace: Trace, program: Program) -> int:
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
            raise UsageError(*_too_few(trace, program))
        return int(self._fails(self.report))

    def _fails(self, report: Report) -> bool:
        if self.fail_on == "never":
            return False
        if self.fail_on == "confirmed" and any(site.verdict is SiteVerdict.CONFIRMED for site in report.sites):
            return True
        judged = (s for s in report.survivors if s.known is None and s.fingerprint not in self.accepted)
        return any(survivor.verdict in _FAILING for survivor in judged)


def _writable(path: str) -> str:
    """`path`, absolute (the program may change the folder).

    Raises:
        UsageError: its folder does not exist.
    """
    absolute = os.path.abspath(path)
    if not Path(absolute).parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {Path(path).parent}")
    return absolute


def _too_few(trace: Trace, program: Program) -> tuple[str, str]:
    step, seen = trace.steps.named, trace.session.seen
    if trace.steps.missing:
        return trace.steps.missing, "name a function as NAME, Class.method or module:qualname"
    if step and seen < LEAST_BOUNDARIES:
        return f"the step {step!r} was {'called once' if seen else 'never called'}", "two steps are the least to compare"
    if "torch" not in sys.modules:
        return f"{program.path} never imports torch", "nothing to trace"
    return (
        f"{program.path} ended after {plural(seen, 'step')}, too few to compare",
        "name the step: --step optimizer, --step backward or --step FUNCTION",
    )

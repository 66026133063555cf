"""`lifetime trace`: run a program and name who holds every tensor that outlives its step."""

from __future__ import annotations

from collections.abc import Sequence

from lifetime.cli.trace_options import options_of, parser, split
from lifetime.cli.trace_outcome import Outcome
from lifetime.errors import UsageError
from lifetime.tracer.program import module, script
from lifetime.tracer.steps import check
from lifetime.tracer.trace import Trace


def run(argv: Sequence[str]) -> int:
    arguments = parser()
    ours, rest = split(argv, arguments)
    chosen = arguments.parse_args(ours)
    outcome = Outcome(chosen)
    if not chosen.module and not rest:
        raise UsageError("no script to trace", "lifetime trace [OPTIONS] SCRIPT [ARG...]")
    check(chosen.step)
    program = module(chosen.module, rest) if chosen.module else script(rest[0], rest[1:])
    trace = Trace(options_of(chosen), outcome.deliver, program.command, outcome.wait)
    code = trace.run(program)
    return code if code or not trace.session.here else outcome.exit_code(trace, program.path)

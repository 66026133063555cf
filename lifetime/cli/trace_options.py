"""The options of `lifetime trace`, and where they end."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lifetime.tracer.options import Options

LONGEST_S = 86_400


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lifetime trace",
        usage="lifetime trace [OPTIONS] SCRIPT [ARG...]\n       lifetime trace [OPTIONS] -m MODULE [ARG...]",
        description="Run a program and name who holds every tensor that outlives its step.",
        epilog="Exit code: 0 clean; 1 survivors that --fail-on names (growing stands for growing and until-gc, confirmed adds "
        "confirmed sites); 2 could not do it. The program's own non-zero code passes through.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    add(
        "--step",
        metavar="optimizer|backward|FUNCTION",
        help="where a step ends: NAME, Class.method or module:qualname (what the program shows: its optimizer, else backward)",
    )
    add("--warmup", type=_count, default=1, metavar="N", help="steps that are not judged (1)")
    add("--steps", type=_positive, default=6, metavar="N", help="steps to judge after warm-up (6)")
    add("--start-step", type=_count, default=0, metavar="N", help="steps to let pass before warm-up (0)")
    add("--stop", action="store_true", help="end the program once the report is made")
    add("--gc", choices=("as-is", "off"), default="as-is", help="off: no automatic collection during the observed steps (as-is)")
    add("--site", action="append", default=[], metavar="PATH:LINE", help="watch only this site (repeatable)")
    add("--no-prove", action="store_true", help="do not try the cut")
    add("-o", dest="output", metavar="REPORT.json", help="write the report; of many ranks: a folder, one file a rank")
    add("--render", action="append", default=[], metavar="FILE", help="draw the report; the ending says how (repeatable)")
    add("--engine", choices=("auto", "dot", "pure", "builtin"), default="auto", help="what lays the picture out (auto)")
    add("--format", choices=("text", "json"), default="text", help="text on stderr, or the JSON of -o alone (text)")
    add("--fail-on", choices=("growing", "confirmed", "never"), default="growing", help="what makes the exit code 1 (growing)")
    add("--baseline", metavar="FILE", help="a report whose survivors are accepted")
    add("--deep", action="store_true", help="remember where tensors were made (slow)")
    add("--addresses", action="store_true", help="record where each tensor lies, for lifetime render --memory-snapshot")
    add("--on-oom", action=argparse.BooleanOptionalAction, default=True, help="at out-of-memory, say who held the most")
    add("--deadline", type=_seconds, default=30.0, metavar="S", help="seconds that one look at the heap may take (30)")
    add("--at-peak", action="store_true", help="say who is alive at the step with the highest peak")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds up to {LONGEST_S:,}")
    return number


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


def options_of(chosen: argparse.Namespace) -> Options:
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
        addresses=chosen.addresses,
        on_oom=chosen.on_oom,
        at_peak=chosen.at_peak,
        deadline_s=chosen.deadline,
    )

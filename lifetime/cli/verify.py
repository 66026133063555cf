"""`lifetime verify SCRIPT`: what does the fix buy, and are the numbers the same?"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from lifetime.errors import UsageError
from lifetime.files import writable, write_whole
from lifetime.linter import registry
from lifetime.report.shapes import encode
from lifetime.report.verify_text import verify_markdown, verify_text
from lifetime.verify import verify
from lifetime.verify.arms import Order
from lifetime.verify.fixes import site
from lifetime.verify.model import Conclusion, Verification
from lifetime.verify.scale import parse

EXIT_CODES = {
    Conclusion.LOWER: 0,
    Conclusion.NO_GAIN: 0,
    Conclusion.CORRECTED: 1,
    Conclusion.CHANGED: 1,
    Conclusion.NOT_DETERMINISTIC: 2,
}


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    program = (*(("-m", options.module) if options.module else ()), *options.program)
    if not program:
        raise UsageError("no program to verify", "lifetime verify [OPTIONS] SCRIPT [ARG...]")
    if options.repetitions < 2:
        raise UsageError("-n must be at least 2", "one run of each cannot show whether the program is deterministic")
    if options.output and Path(writable(options.output)).suffix.lower() not in {".json", ".md"}:
        raise UsageError(f"cannot write {options.output}", "endings: .json .md")
    order = Order(program, _codes(options.select), tuple(options.site), options.timeout)
    sizes = parse(options.scale) if options.scale else None
    _check(order)
    with _ended_with_us():
        result = verify(order, repetitions=options.repetitions, sizes=sizes, progress=_progress)
    print("\n".join(verify_text(result)))
    if options.output:
        _write(result, Path(options.output))
    return EXIT_CODES[result.conclusion]


def _codes(text: str) -> tuple[str, ...]:
    known = {rule.code for rule in registry.load()}
    codes = tuple(code.strip() for code in text.split(",") if code.strip())
    unknown = [code for code in codes if code not in known]
    if unknown or not codes:
        raise UsageError(f"--select {text!r} names no rule", f"rules: {', '.join(sorted(known))}")
    return codes


def _check(order: Order) -> None:
    """What can be wrong is said before the first run."""
    for text in order.sites:
        path, _ = site(text)
        if not Path(path).is_file():
            raise UsageError(f"--site {text}: no file {path}")
    if order.program[0] != "-m" and not Path(order.program[0]).exists():
        raise UsageError(f"no script {order.program[0]!r}", "lifetime verify [OPTIONS] SCRIPT [ARG...]")


@contextmanager
def _ended_with_us() -> Iterator[None]:
    """A run of the program ends with this process where that is asked to end, and its folder goes."""

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress(text: str) -> None:
    print(f"verify: {text}", file=sys.stderr, flush=True)


def _write(result: Verification, path: Path) -> None:
    if path.suffix.lower() == ".md":
        write_whole(path, verify_markdown(result))
    else:
        value = encode(result)
        write_whole(path, json.dumps({"schema": value.pop("schema"), **value}, indent=2, ensure_ascii=False) + "\n")


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="lifetime verify",
        description="Run a program with and without the fix, applied in memory, and compare: gradients bit for bit, and memory.",
        epilog="Exit code: 0 lower or no-gain, 1 corrected or changed, 2 not deterministic or not possible.",
    )
    result.add_argument("-n", dest="repetitions", type=int, default=3, metavar="N", help="runs of each kind (3)")
    result.add_argument("--site", action="append", default=[], metavar="PATH:LINE", help="fix this finding only")
    result.add_argument("--select", default="LT001", metavar="CODES", help="fix the findings of these rules (LT001)")
    result.add_argument("--scale", metavar="KEY=V1,V2", help="run several sizes through the program's own argument --KEY")
    result.add_argument("--timeout", type=float, default=3600.0, metavar="S", help="seconds for one run (3600)")
    result.add_argument("-o", "--output", metavar="FILE", help=".json or .md")
    result.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead of a script")
    result.add_argument("program", nargs=argparse.REMAINDER, metavar="SCRIPT [ARG...]")
    return result

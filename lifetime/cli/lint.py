"""`lifetime lint`: the static pass."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lifetime.linter import engine
from lifetime.linter.settings import Settings


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("lifetime lint", description="Find code that leaves gradients and graphs behind.")
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH")
    for name in ("--select", "--ignore", "--extend-select"):
        parser.add_argument(name, type=_comma_list, default=(), metavar="CODES")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")
    parser.add_argument("--exit-zero", action="store_true")
    return parser


def _comma_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    settings = Settings(options.select, options.ignore, options.extend_select)
    result = engine.lint(options.paths, settings=settings)
    if options.output_format == "json":
        from lifetime.report.lint_json import lines
    else:
        from lifetime.report.lint_text import lines
    for line in lines(result):
        print(line)
    for problem in result.problems:
        print(f"lifetime: {problem.path}:{problem.line}: {problem.message}", file=sys.stderr)
    print(f"{result.checked} files checked", file=sys.stderr)
    return 0 if options.exit_zero and result.exit_code == 1 else result.exit_code

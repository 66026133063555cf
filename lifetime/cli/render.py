"""`lifetime render REPORT... -o FILE`: draw again, without running anything."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lifetime.report import engines
from lifetime.report.records import read
from lifetime.report.render import render_to


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    report = read(options.reports[0])
    for path in options.output:
        render_to(report, path, options.engine)
    return 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="lifetime render", description="Draw a report again.")
    result.add_argument("reports", nargs="+", metavar="REPORT", help="what `lifetime trace -o` wrote")
    result.add_argument("-o", "--output", action="append", required=True, metavar="FILE", help=".svg .png .pdf .dot .txt")
    result.add_argument("--engine", choices=engines.NAMES, default="auto")
    return result

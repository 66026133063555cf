"""`lifetime render REPORT... -o FILE`: draw again, without running anything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lifetime.errors import ReportError, UsageError
from lifetime.heap.model import Report
from lifetime.report import engines
from lifetime.report.allocations import joined
from lifetime.report.compare import compared_views, regressions
from lifetime.report.memory_snapshot import read_allocations
from lifetime.report.policy import FAIL_ON, fails
from lifetime.report.progress import progress
from lifetime.report.ranks import merged
from lifetime.report.records import read
from lifetime.report.render import check, endings, render_to
from lifetime.report.terminal import shown
from lifetime.report.text import view_text
from lifetime.report.view import View


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    if len(options.reports) > 2:
        raise UsageError(f"{len(options.reports)} reports", "give one, a folder of one file a rank, or two to compare")
    for path in options.output:
        check(path, options.engine)
    views = [_read(path) for path in options.reports]
    if options.memory_snapshot:
        views = [_with_stacks(options.reports, views, options.memory_snapshot)]
    view = views[0] if len(views) == 1 else compared_views(*views)
    for path in options.output:
        note = render_to(view, path, options.engine)
        if note:
            print(f"lifetime: {path}: {note}", file=sys.stderr)
    if not options.output:
        print("\n".join(shown(view_text(view), sys.stdout)))
    return int(fails(_judged(views), options.fail_on))


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="lifetime render",
        description="Draw a report again; of two reports, draw what changed. Without -o, print it.",
    )
    add = result.add_argument
    add("reports", nargs="+", metavar="REPORT", help="what `lifetime trace -o` wrote: a file, or a folder of one file a rank")
    add("-o", "--output", action="append", default=[], metavar="FILE", help=f"by ending: {endings()} (repeatable)")
    add(
        "--memory-snapshot",
        metavar="FILE",
        help="what torch.cuda.memory._dump_snapshot wrote at the end of the same run: adds where each tensor was allocated "
        "(needs a report of lifetime trace --addresses)",
    )
    add("--engine", choices=engines.NAMES, default="auto", help="what lays the picture out")
    add(
        "--fail-on",
        choices=FAIL_ON,
        default="never",
        help="what makes the exit code 1 (never); of two reports only what is new or grew counts",
    )
    return result


def _read(path: str) -> View:
    """A report, or all of a folder merged.

    Raises:
        ReportError: a file cannot be read, or the folder holds none.
    """
    if not Path(path).is_dir():
        return View(read(path))
    files = sorted(Path(path).glob("rank-*.json"))
    if not files:
        raise ReportError(f"{path} holds no rank-*.json", "write them with: torchrun ... -m lifetime trace -o FOLDER SCRIPT")
    reports = []
    with progress("reading ranks", sys.stderr) as advance:
        for number, file in enumerate(files):
            advance(number, len(files))
            reports.append(read(file))
    return merged(reports)


def _with_stacks(paths: Sequence[str], views: Sequence[View], snapshot: str) -> View:
    """The one report with its tensors looked up in the file `snapshot`.

    Raises:
        UsageError: several reports; a memory snapshot is of one process.
        ReportError: the snapshot cannot be read or is none, or the report has no addresses.
    """
    if len(views) > 1 or Path(paths[0]).is_dir():
        raise UsageError("a memory snapshot is of one process", "give the one report of that process, FOLDER/rank-00000.json")
    return View(joined(views[0].report, read_allocations(snapshot)))


def _judged(views: Sequence[View]) -> Report:
    return views[0].report if len(views) == 1 else regressions(views[0].report, views[1].report)

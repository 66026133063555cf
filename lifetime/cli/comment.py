"""`lifetime comment REPORT`: the comment for a release, printed or put in its place."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lifetime import comment
from lifetime.errors import UsageError
from lifetime.report.clean import one_line
from lifetime.report.comment import comment_lines, comment_markdown
from lifetime.report.records import read


def run(argv: Sequence[str]) -> int:
    options = parser().parse_args(argv)
    if options.write and options.format == "markdown":
        raise UsageError("--write puts a Python comment above the release", "leave out --format markdown")
    report = read(options.report)
    site, survivor = comment.choose(report, options.site)
    release = comment.describe(report, site, survivor)
    if options.write:
        changed = comment.write(release)
        print(f"{one_line(site.path, 4096)}: {'comment written' if changed else 'comment is up to date'}", file=sys.stderr)
    elif options.format == "markdown":
        from lifetime.report.mermaid import survivor_mermaid

        print(comment_markdown(release, survivor_mermaid(survivor)), end="")
    else:
        print("\n".join(comment_lines(release, comment.LINE_LENGTH)))
    return 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="lifetime comment", description="Write the comment for a release.")
    result.add_argument("report", metavar="REPORT", help="what `lifetime trace -o` wrote")
    result.add_argument("--site", metavar="PATH:LINE", help="which site, where several are confirmed")
    result.add_argument("--write", action="store_true", help="put it above the release, in place of an older one")
    result.add_argument("--format", choices=("python", "markdown"), default="python", help="markdown: for a pull request")
    return result

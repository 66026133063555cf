"""The options of `lifetime lint`: command line over environment over configuration."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple

from lifetime.config import FORMATS, Config, Resolver
from lifetime.errors import UsageError
from lifetime.linter.settings import Selection, path_patterns, selected
from lifetime.linter.severity import Severity

MOST_JOBS = 1024
SOURCES = (".py", ".pyi", ".ipynb")
EPILOG = """\
exit codes: 0 clean, 1 findings, 2 something could not be checked (named on stderr; the rest is still checked)
environment: LIFETIME_OUTPUT_FORMAT, LIFETIME_OUTPUT_FILE, LIFETIME_NO_CACHE, LIFETIME_CACHE_DIR, NO_COLOR
"""


class Output(NamedTuple):
    """A format and the file it goes to; none for standard output."""

    format: str
    file: str = ""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lifetime lint",
        usage="lifetime lint [OPTIONS] [PATH ...]",
        description="Find code that leaves gradients and graphs behind.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: .), or - for standard input")
    _add_rules(parser.add_argument_group("rules"))
    _add_files(parser.add_argument_group("files"))
    _add_output(parser.add_argument_group("output"))
    _add_changes(parser.add_argument_group("changes"))
    return parser


def _add_rules(group: argparse._ArgumentGroup) -> None:
    for name, help in (
        ("--select", "only these rules: codes, prefixes, names or ALL"),
        ("--ignore", "not these"),
        ("--extend-select", "these as well"),
    ):
        group.add_argument(name, type=_list, action="extend", default=[], metavar="CODES", help=help)
    severities = [severity.value for severity in Severity]
    group.add_argument("--min-severity", choices=severities, help="hide what is less severe")
    group.add_argument("--baseline", metavar="FILE", help="hide the findings that FILE lists")
    group.add_argument("--report", metavar="REPORT", help="join the evidence of a trace: confirmed is an error, refuted is hidden")
    group.add_argument("--why", metavar="PATH:LINE", help="explain a finding or a silence")


def _add_files(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--exclude", type=_list, action="extend", default=[], metavar="PATTERNS", help="skip these as well (as in .gitignore)"
    )
    group.add_argument("--force-exclude", action="store_true", help="skip excluded files even where they are named")
    group.add_argument("--stdin-filename", metavar="PATH", help="the name of what comes on standard input")
    group.add_argument("--no-cache", action="store_true", help="neither use nor write results of earlier runs")
    group.add_argument("--jobs", type=_count, default=0, metavar="N", help="processes (default: as many as processors, if it pays)")


def _add_output(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output-format", choices=FORMATS, help="what goes to standard output (default: text)")
    group.add_argument(
        "--output", type=_output, action="append", default=[], metavar="FORMAT=FILE", help="write this too; repeatable"
    )
    group.add_argument("--statistics", action="store_true", help="counts for each rule instead of the findings")
    group.add_argument("--exit-zero", action="store_true", help="exit 0 where there are findings (never where there are errors)")


def _add_changes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--fix", action="store_true", help="make the safe fixes")
    group.add_argument("--unsafe-fixes", action="store_true", default=None, help="with --fix or --diff: the unsafe ones too")
    group.add_argument("--diff", action="store_true", help="show what --fix would change; write nothing")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit 1 where something was fixed")
    group.add_argument("--add-keep", metavar="REASON", help="excuse every finding by a comment with this reason")
    group.add_argument("--write-baseline", metavar="FILE", help="list the findings in FILE, to hide them from now on")


def _list(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise argparse.ArgumentTypeError("names nothing (leave the option out)")
    return parts


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a count: {text!r}")
    if len(text) > 9 or int(text) > MOST_JOBS:
        raise argparse.ArgumentTypeError(f"more processes than this can use: {text[:20]} (at most {MOST_JOBS})")
    return int(text)


def _output(text: str) -> Output:
    format, _, file = text.partition("=")
    if format not in FORMATS or not file:
        raise argparse.ArgumentTypeError(f"not FORMAT=FILE with a format of {', '.join(FORMATS)}: {text!r}")
    return Output(format, file)


def resolver(options: argparse.Namespace) -> Resolver:
    """Settings by folder, under the command line.

    Raises:
        UsageError: a selector names no rule.
    """
    selection = Selection(tuple(options.select), tuple(options.ignore), tuple(options.extend_select))
    selected((selection,))
    exclude = (path_patterns(os.getcwd(), options.exclude),) if options.exclude else ()
    return Resolver(selection, exclude, options.force_exclude)


def outputs(options: argparse.Namespace, config: Config) -> list[Output]:
    """Where the findings go: first standard output (or LIFETIME_OUTPUT_FILE), then the files that were named.

    Raises:
        UsageError: the environment names a format that does not exist.
    """
    named = os.environ.get("LIFETIME_OUTPUT_FORMAT", "")
    if named and named not in FORMATS:
        raise UsageError(f"LIFETIME_OUTPUT_FORMAT={named}: no such format", f"formats: {', '.join(FORMATS)}")
    main = Output(options.output_format or named or config.output_format, os.environ.get("LIFETIME_OUTPUT_FILE", ""))
    found = [main, *options.output]
    check_files([output.file for output in found if output.file], options.paths)
    return found


def check_files(files: Sequence[str], paths: Sequence[str]) -> None:
    """Raises UsageError where two outputs go to one file, or one would overwrite what is linted."""
    taken = {os.path.realpath(path) for path in paths}
    seen: set[str] = set()
    for file in files:
        real = os.path.realpath(file)
        if real in taken or (real.endswith(SOURCES) and os.path.exists(real)):
            raise UsageError(f"{file}: an output would overwrite a source", "name another file")
        if real in seen and (os.path.isfile(real) or not os.path.exists(real)):
            raise UsageError(f"{file}: two outputs go to this one file", "name another file for one of them")
        seen.add(real)


def cache_folder(options: argparse.Namespace, config: Config, project: str) -> str:
    """The folder of results; empty for none."""
    if options.no_cache or is_set("LIFETIME_NO_CACHE"):
        return ""
    configured = os.path.join(config.root, config.cache_dir) if config.cache_dir else os.path.join(project, ".lifetime_cache")
    return os.environ.get("LIFETIME_CACHE_DIR") or configured


def is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() not in {"", "0", "false", "no", "off"}


def check_together(options: argparse.Namespace, paths: Sequence[str]) -> None:
    """Raises UsageError for options that make no sense together."""
    modes = [
        f"--{name.replace('_', '-')}"
        for name in ("fix", "diff", "add_keep", "write_baseline")
        if getattr(options, name) is not None and getattr(options, name) is not False
    ]
    if len(modes) > 1 and set(modes) != {"--fix", "--diff"}:
        raise UsageError(f"{' and '.join(modes)} do not go together", "run them one after the other")
    if "-" in paths and len(paths) > 1:
        raise UsageError("- goes with no other path", "lint standard input and files apart")
    if options.add_keep is not None and (not options.add_keep.strip() or "\n" in options.add_keep):
        raise UsageError("--add-keep needs a reason, on one line", "--add-keep 'the pool reuses these leaves'")

"""What `lifetime lint` prints and writes: findings in every format asked for, changes, counts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from lifetime import __version__
from lifetime.cli.lint_options import Output
from lifetime.errors import LifetimeError
from lifetime.linter import places
from lifetime.linter.job import Change, Mode
from lifetime.linter.result import LintResult, Problem
from lifetime.units import plural

MODULES = {"text": "lint_text", "json": "lint_json", "sarif": "sarif", "github": "github", "gitlab": "gitlab", "junit": "junit"}
DID = {Mode.CHECK: "", Mode.FIX: "Fixed", Mode.DIFF: "Would fix", Mode.KEEP: "Excused"}


def emit(outputs: Sequence[Output], result: LintResult, statistics: bool) -> LintResult:
    """The result, with a problem for every file that could not be written: one that fails does not cost the others."""
    for output in outputs:
        lines = list(_lines(output, result, statistics))
        if not output.file:
            say(lines)
        elif problem := _write(output.file, lines):
            result = result._replace(problems=(*result.problems, problem))
    return result


def _write(file: str, lines: Iterable[str]) -> Problem | None:
    from lifetime.files import write_whole

    try:
        write_whole(file, "".join(f"{line}\n" for line in lines))
    except LifetimeError as error:
        return Problem(file, error.message)
    return None


def _lines(output: Output, result: LintResult, statistics: bool) -> Iterator[str]:
    if output.format == "text" and not result.findings:
        return iter(())  # the common case, without an import
    module = import_module(f"lifetime.report.{MODULES[output.format]}")
    if statistics and output.format in ("text", "json"):
        found: Iterator[str] = module.statistics(result)
    elif output.format == "text":
        found = module.lines(result, color=not output.file and has_color(sys.stdout.isatty()))
    elif output.format == "json":
        found = module.lines(result)
    elif output.format == "sarif":
        found = module.lines(result, base(), _pages(result), __version__)
    else:
        found = module.lines(result, base())
    return found


def _pages(result: LintResult) -> dict[str, str]:
    from lifetime.linter import page, registry

    codes = {finding.code for finding in result.findings}
    return {rule.code: page.page_text(rule) for rule in registry.load() if rule.code in codes} if codes else {}


def base() -> str:
    """The working directory below the root of its project, which CI systems count paths from."""
    return places.project_name(os.path.join(os.getcwd(), "x"))[:-1].rstrip("/")


def has_color(is_terminal: bool) -> bool:
    """By the usual variables, else only on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def say(lines: Iterable[str]) -> None:
    """To standard output, whatever characters it can show."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    for line in lines:
        print(line)


def diff(changes: Iterable[Change]) -> Iterator[str]:
    from difflib import unified_diff

    for change in changes:
        before, after = (text.splitlines() for text in (change.before, change.after))
        yield from unified_diff(before, after, change.path, change.path, lineterm="")


def pass_on(text: bytes) -> None:
    """The text from standard input, changed or not, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text)


def summary(result: LintResult, mode: Mode) -> Iterator[str]:
    """Counts and problems, for standard error."""
    for problem in result.problems:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        yield f"lifetime: {place}: {problem.message}"
    if result.fixed:
        yield f"{DID[mode]} {plural(result.fixed, 'finding')}."
    if result.findings:
        yield f"Found {plural(len(result.findings), 'finding')}{_fixable(result)}."
    hidden = [f"{count} {why}" for why, count in result.suppressed.items()]
    if hidden:
        yield f"Not shown: {', '.join(hidden)}."
    yield _checked(result)


def _fixable(result: LintResult) -> str:
    from lifetime.linter.model import Safety

    fixes = [finding.fix for finding in result.findings if finding.fix]
    safe = sum(fix.safety is Safety.SAFE for fix in fixes)
    other = len(fixes) - safe
    parts = [f"{safe} fixable with `--fix`"] if safe else []
    parts += [f"{other} {'more ' if safe else ''}with `--fix --unsafe-fixes`"] if other else []
    return f" ({', '.join(parts)})" if parts else ""


def _checked(result: LintResult) -> str:
    by_bytes = f" ({result.by_bytes} of them hold nothing that a rule looks for)" if result.by_bytes else ""
    failed = len({problem.path for problem in result.problems})
    parts = [f"{plural(result.checked, 'file')} checked{by_bytes}"]
    parts += [f"{plural(failed, 'file')} could not be checked"] if failed else []
    skipped = ", ".join(plural(count, why) for why, count in sorted(result.skipped.items()))
    parts += [f"{sum(result.skipped.values())} skipped ({skipped})"] if skipped else []
    return ", ".join(parts) + "."

"""`lifetime lint`: the static pass."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from lifetime.cli import lint_options, lint_output
from lifetime.cli.lint_options import Output
from lifetime.config import Config, Resolver
from lifetime.errors import LifetimeError, UsageError
from lifetime.linter import engine, places, triage
from lifetime.linter.engine import Survey
from lifetime.linter.job import Job, Mode
from lifetime.linter.result import LintResult
from lifetime.linter.severity import Severity
from lifetime.units import plural


def run(argv: Sequence[str]) -> int:
    _check_streams()
    options = lint_options.parser().parse_args(argv)
    try:
        return _run(options)
    except LifetimeError:
        if options.output_format == "json":  # whoever reads the list gets one, whatever went wrong
            print("[]")
        raise


def _check_streams() -> None:
    """Raises UsageError where standard output is closed (`>&-`); a closed standard error costs the messages only."""
    if sys.stderr is None or sys.stderr.closed:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None or sys.stdout.closed:
        raise UsageError("standard output is closed", "lifetime lint > findings.txt")


def _given() -> bytes:
    """What comes on standard input. Raises UsageError where it is closed or cannot be read."""
    if sys.stdin is None or getattr(sys.stdin, "closed", False):
        raise UsageError("standard input is closed", "lifetime lint - < train.py")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {(error.strerror or str(error)).lower()}") from None


def _run(options: argparse.Namespace) -> int:
    paths = options.paths or ["."]
    lint_options.check_together(options, paths)
    resolver = lint_options.resolver(options)
    config = resolver.config(os.getcwd())
    if options.why:
        from lifetime.cli.lint_why import why

        return why(options.why, resolver)
    outputs = lint_options.outputs(options, config)
    if options.write_baseline:
        lint_options.check_files([options.write_baseline], options.paths)
    survey = _survey(options, paths, resolver, config)
    result = _triage(options, survey.result._replace(problems=(*resolver.problems, *survey.result.problems)), config)
    if options.write_baseline:
        return _write_baseline(options.write_baseline, result)
    return _report(options, survey, result, outputs)


def _survey(options: argparse.Namespace, paths: Sequence[str], resolver: Resolver, config: Config) -> Survey:
    cache = lint_options.cache_folder(options, config, places.project(os.getcwd()))
    unsafe = config.unsafe_fixes if options.unsafe_fixes is None else options.unsafe_fixes
    how = Job(_mode(options), unsafe, options.add_keep or "", cache)
    if paths == ["-"]:
        name = options.stdin_filename or "-"
        return engine.survey_source(_given(), name, resolver.settings(os.path.dirname(os.path.abspath(name))), how)
    if not sys.stderr.isatty():
        return engine.survey(paths, resolver.settings, how, options.jobs)
    from lifetime.report.progress import progress

    with progress("linting", sys.stderr) as advance:
        return engine.survey(paths, resolver.settings, how, options.jobs, advance)


def _mode(options: argparse.Namespace) -> Mode:
    if options.diff:
        return Mode.DIFF
    if options.add_keep is not None:
        return Mode.KEEP
    return Mode.FIX if options.fix else Mode.CHECK


def _triage(options: argparse.Namespace, result: LintResult, config: Config) -> LintResult:
    if options.report:
        from lifetime.evidence import join

        result = join(result, options.report, options.paths or ["."])
    least = Severity(options.min_severity or config.min_severity)
    result = triage.hide_below(result, least)
    listed = options.baseline or (config.baseline and os.path.join(config.root, config.baseline))
    if listed and not options.write_baseline:
        result = triage.hide_known(result, triage.read_baseline(listed))
    return result


def _write_baseline(file: str, result: LintResult) -> int:
    from lifetime.files import write_whole

    write_whole(file, triage.baseline(result))
    for line in lint_output.summary(result._replace(findings=()), Mode.CHECK):
        print(line, file=sys.stderr)
    print(f"{file} lists {plural(len(result.findings), 'finding')}.", file=sys.stderr)
    return 2 if result.problems else 0


def _report(options: argparse.Namespace, survey: Survey, result: LintResult, outputs: list[Output]) -> int:
    if options.diff:
        lint_output.say(lint_output.diff(survey.changes))
        outputs = outputs[1:]
    elif options.paths == ["-"] and _mode(options) is not Mode.CHECK:
        lint_output.pass_on(survey.given)
        outputs = outputs[1:]
    result = lint_output.emit(outputs, result, options.statistics)
    for line in lint_output.summary(result, _mode(options)):
        print(line, file=sys.stderr)
    return _exit_code(options, result)


def _exit_code(options: argparse.Namespace, result: LintResult) -> int:
    if result.exit_code == 2:
        return 2
    changed = result.fixed and (options.diff or options.exit_non_zero_on_fix)
    return 1 if (result.findings or changed) and not options.exit_zero else 0

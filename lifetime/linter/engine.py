"""The static pass over files: find them, gate them, check them, add it all up."""

from __future__ import annotations

from collections.abc import Sequence

from lifetime.errors import SourceError
from lifetime.linter import files, gate, loader
from lifetime.linter.model import Finding, LintResult, Problem
from lifetime.linter.settings import Settings, selected


def lint(paths: Sequence[str], *, settings: Settings | None = None) -> LintResult:
    """Everything the rules say about the files and folders in `paths`."""
    settings = settings or Settings()
    codes = selected(gate.rules(), settings)
    findings: list[Finding] = []
    problems: list[Problem] = []
    checked = excused = 0
    for file, path in files.find(paths):
        try:
            data = loader.read(file)
            text = loader.decode(data, path)
            checked += 1
            if not gate.hits(data, codes):
                continue
            from lifetime.linter.check import check
            from lifetime.linter.module import Module

            module = Module(path, text.source, loader.check_syntax(text.source, path), file)  # type: ignore[arg-type]
            result = check(module, gate.hits(data, codes), path)
        except SourceError as error:
            problems.append(Problem(path, error.message, error.line))
            continue
        findings += result.findings
        problems += result.problems
        excused += result.excused
    suppressed = {"keep comment": excused} if excused else {}
    return LintResult(tuple(findings), tuple(problems), checked, {}, suppressed)


def check_source(source: str, path: str, *, file: str = "", select: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """What the rules say about one source text.

    Raises:
        SourceError: it does not parse.
        RuleError: a rule crashed.
    """
    from lifetime.errors import RuleError
    from lifetime.linter.check import check
    from lifetime.linter.module import Module

    codes = selected(gate.rules(), Settings(select=tuple(select or ())))
    hit = gate.hits(source.encode("utf-8", "surrogatepass"), codes)
    if not hit:
        return ()
    result = check(Module(path, source, loader.check_syntax(source, path), file), hit, path)  # type: ignore[arg-type]
    if result.problems:
        raise RuleError(result.problems[0].message, "LT")
    return result.findings

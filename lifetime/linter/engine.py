"""The static pass over files: find them, gate them, check them, add it all up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lifetime.errors import RuleError, SourceError
from lifetime.linter import files, gate, job, loader, places
from lifetime.linter.job import Change, Job, Mode, Outcome, Task
from lifetime.linter.memo import Memo
from lifetime.linter.places import Found, Target
from lifetime.linter.result import LintResult, Problem
from lifetime.linter.settings import Selection, Settings, path_patterns, selected

if TYPE_CHECKING:
    from lifetime.linter.model import Finding
    from lifetime.linter.pool import Crew

ALSO_PARSED = 1_000_000
"""Bytes of files without a needle that are parsed all the same, so that a small run names every syntax error and a large one
need not wait for what no rule can speak about."""
MANY = 100
"""Files from which on it pays to remember those that hold nothing."""


class Survey(NamedTuple):
    """A result, and the changes that were made or would be."""

    result: LintResult
    changes: tuple[Change, ...] = ()
    given: bytes = b""
    """What came on standard input, with the changes made."""


def lint(
    paths: Sequence[str],
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int = 1,
    cache: str = "",
) -> LintResult:
    """What the rules say about the files and folders in `paths`.

    No configuration is read. `cache` names a folder for results, `jobs` 0 means as many processes as there are processors.

    Raises:
        UsageError: a selector names no rule.
        RuleError: a rule does not load.
    """
    selection = Selection(tuple(select), tuple(ignore), tuple(extend_select))
    settings = Settings((selection,), (path_patterns(places.here(), exclude),))
    return survey(paths, lambda folder: settings, Job(cache=cache), jobs).result


def check_source(source: str, path: str, *, file: str = "", select: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """What the rules say about one source text.

    Raises:
        SourceError: it does not parse.
        RuleError: a rule crashed.
    """
    codes = selected((Selection(select=tuple(select or ())),))
    if not gate.hits(source.encode("utf-8", "surrogatepass"), codes):
        return ()
    from lifetime.linter.check import Place, examine

    name = places.project_name(file) if file else path
    checked = examine(loader.Text(source), Place(path, file, name), codes)
    if checked.problems:
        raise RuleError(checked.problems[0].message, "LT")
    return checked.findings


def survey(
    paths: Sequence[str],
    settings: Callable[[str], Settings],
    how: Job,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Survey:
    """Everything about the files in `paths`. `settings` gives those of a folder; `progress` is told how far things are."""
    found = files.find(paths, settings)
    run = _Run(how, jobs, Memo(how.cache if how.mode is Mode.CHECK and len(found.targets) >= MANY else ""))

    def tell() -> None:
        if progress:
            progress(run.done, len(found.targets))

    for target in found.targets:
        tell()
        run.take(target, settings)
    run.finish(tell)
    return _total(found, run)


def survey_source(data: bytes, path: str, settings: Settings, how: Job) -> Survey:
    """The same for one file that is not read from disk but given, under the name `path`."""
    target = Target("", places.shown(path), explicit=True)
    run = _Run(how, 1, Memo(""))
    run.sort(target, data, settings.codes(places.absolute(path)))
    run.finish()
    survey = _total(Found([target], Counter(), []), run)
    changed = run.outcomes[0].data if run.outcomes else None
    return survey._replace(given=data if changed is None else changed)


class _Run:
    """A survey under way: outcomes so far, files waiting for the rules, and files that no rule can speak about."""

    def __init__(self, how: Job, jobs: int, memo: Memo) -> None:
        self.how = how
        self.jobs = jobs
        self.outcomes: list[Outcome] = []
        self.crew: Crew | None = None
        self.memo = memo
        self.others: list[tuple[Target, bytes | None]] = []
        self.other_bytes = self.by_bytes = self.taken = 0

    @property
    def done(self) -> int:
        """Files that were taken and are waiting for no rule."""
        return self.taken - (self.crew.waiting if self.crew else 0)

    def take(self, target: Target, settings: Callable[[str], Settings]) -> None:
        self.taken += 1
        codes = settings(places.folder(target.file)).codes(target.file)
        size = self.memo.knows(target.file, codes)
        if size is not None:
            self.set_aside(target, None, size)
            return
        try:
            self.sort(target, loader.read(target.file), codes)
        except SourceError as error:
            self.memo.forget(target.file)
            self.outcomes.append(_failure(target, error))

    def sort(self, target: Target, data: bytes, codes: frozenset[str]) -> None:
        if not gate.hits(job.gateable(target, data), codes, target.path):
            self.set_aside(target, data, len(data))
            return
        self.memo.forget(target.file)
        task = Task(target, data, codes)
        if known := job.cached(task, self.how):
            self.outcomes.append(known)
            return
        self.crew = self.crew or _crew(self.how, self.jobs)
        self.crew.give(task)

    def set_aside(self, target: Target, data: bytes | None, size: int) -> None:
        self.by_bytes += 1
        self.other_bytes += size
        if self.other_bytes <= ALSO_PARSED:
            self.others.append((target, data))
        else:
            self.others.clear()

    def finish(self, tell: Callable[[], None] = lambda: None) -> None:
        """Wait for all; `tell` is called after each file."""
        self.outcomes += self.crew.finish(tell) if self.crew else ()
        self.by_bytes -= len(self.others)
        for target, data in self.others:
            try:
                job.parse(target, loader.read(target.file) if data is None else data)
            except SourceError as error:
                self.outcomes.append(_failure(target, error))
        if self.other_bytes > ALSO_PARSED:
            self.memo.save()


def _crew(how: Job, jobs: int) -> Crew:
    from lifetime.linter.pool import Crew  # the common run has nothing to do for one

    return Crew(how, jobs)


def _failure(target: Target, error: SourceError) -> Outcome:
    return Outcome(target.path, problems=(Problem(target.path, error.message, error.line),))


def _total(found: Found, run: _Run) -> Survey:
    outcomes = sorted(run.outcomes, key=lambda outcome: outcome.path)
    findings = [f for each in outcomes for f in sorted(each.findings, key=lambda f: (f.cell, f.span, f.code))]
    problems = [*found.problems, *(problem for each in outcomes for problem in each.problems)]
    excused = sum(outcome.excused for outcome in outcomes)
    result = LintResult(
        findings=tuple(findings),
        problems=tuple(problems),
        checked=len(found.targets) - sum(bool(outcome.problems) for outcome in outcomes),
        skipped=Counter(found.skipped),
        suppressed={"keep comment": excused} if excused else {},
        fixed=sum(len(outcome.fixed) for outcome in outcomes),
        by_bytes=run.by_bytes,
    )
    return Survey(result, tuple(outcome.change for outcome in outcomes if outcome.change))

"""One file that passed the gate, through cache, rules and fixes. Runs here or in a worker process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from lifetime.errors import LifetimeError, SourceError
from lifetime.linter import loader
from lifetime.linter.documents import document as read_document
from lifetime.linter.places import Target, project_name
from lifetime.linter.result import Problem

if TYPE_CHECKING:
    from lifetime.linter.check import Checked, Place
    from lifetime.linter.loader import Document
    from lifetime.linter.model import Finding


class Mode(Enum):
    """What to do with a file."""

    CHECK = "check"
    FIX = "fix"
    DIFF = "diff"
    KEEP = "keep"


class Job(NamedTuple):
    """How to treat every file of a run. `cache` is the folder of results, empty for none; `reason` goes into added excuses."""

    mode: Mode = Mode.CHECK
    unsafe: bool = False
    reason: str = ""
    cache: str = ""


class Task(NamedTuple):
    """A file, its bytes, and the rules that are on for it."""

    target: Target
    data: bytes
    codes: frozenset[str]


class Change(NamedTuple):
    """A file's text before and after."""

    path: str
    before: str
    after: str


class Outcome(NamedTuple):
    """What one file has to say."""

    path: str
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    excused: int = 0
    fixed: tuple[Finding, ...] = ()
    change: Change | None = None
    data: bytes | None = None
    """The changed bytes of a file that came on standard input."""


def cached(task: Task, job: Job) -> Outcome | None:
    """The outcome without any work, where it is known."""
    if not job.cache or job.mode is not Mode.CHECK:
        return None
    from lifetime.linter import cache

    place = _place(task.target)
    checked = cache.load(job.cache, cache.key(task.data, place, task.codes), place)
    return _outcome(task.target.path, checked) if checked else None


def run(task: Task, job: Job) -> Outcome:
    """The outcome of one file; whatever goes wrong with it is a problem in it."""
    with _no_collections():
        return _run(task, job)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A syntax tree is a hundred thousand objects and no garbage: collecting while it grows doubles the time of parsing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run(task: Task, job: Job) -> Outcome:
    try:
        document = read_document(task.data, task.target.path)
        if job.mode is Mode.CHECK:
            return _check(document, task, job)
        return _change(document, task, job)
    except SourceError as error:
        return Outcome(task.target.path, problems=(Problem(task.target.path, error.message, error.line),))
    except LifetimeError as error:
        return Outcome(task.target.path, problems=(Problem(task.target.path, error.message),))
    except (RecursionError, MemoryError):
        return Outcome(task.target.path, problems=(Problem(task.target.path, "is too large or nests too deep to check"),))


def _check(document: Document, task: Task, job: Job) -> Outcome:
    from lifetime.linter import cache, check

    place = _place(task.target)
    checked = _placed(document, check.examine(document, place, task.codes))
    if job.cache and not checked.problems:
        cache.store(job.cache, cache.key(task.data, place, task.codes), place, checked)
    return _outcome(task.target.path, checked)


def _change(document: Document, task: Task, job: Job) -> Outcome:
    from lifetime.linter import excuse, fixer

    place = _place(task.target)
    if job.mode is Mode.KEEP:
        repaired = excuse.add(document, place, task.codes, job.reason)
    else:
        repaired = fixer.repair(document, place, task.codes, unsafe=job.unsafe)
    outcome = _outcome(task.target.path, _placed(repaired.document, repaired.checked))
    data = repaired.document.encode()
    if data == task.data:
        return outcome
    if job.mode is not Mode.DIFF and task.target.file:
        _write(task, data)
    change = Change(task.target.path, document.text, repaired.document.text)
    return outcome._replace(fixed=repaired.fixed, change=change, data=None if task.target.file else data)


def _write(task: Task, data: bytes) -> None:
    from lifetime.files import write_whole

    if loader.read(task.target.file) != task.data:
        raise SourceError("changed while it was being fixed: left alone", task.target.path)
    write_whole(task.target.file, data)


def _place(target: Target) -> Place:
    from lifetime.linter.check import Place

    return Place(target.path, target.file, project_name(target.file) if target.file else target.path)


def _placed(document: Document, checked: Checked) -> Checked:
    from dataclasses import replace

    return replace(checked, findings=tuple(map(document.place, checked.findings)))


def _outcome(path: str, checked: Checked) -> Outcome:
    return Outcome(path, checked.findings, checked.problems, checked.excused)


def parse(target: Target, data: bytes) -> None:
    """Raises SourceError where a file that no rule looks at does not parse."""
    loader.tree(read_document(data, target.path), target.path)


def gateable(target: Target, data: bytes) -> bytes:
    """The bytes that the gate looks at: those of the cells of a notebook, else those of the file.

    Raises:
        SourceError: it cannot be decoded.
    """
    if target.path.endswith(".ipynb"):
        return read_document(data, target.path).source.encode("utf-8", "surrogatepass")
    if not data.isascii() or b"\0" in data:
        loader.decode(data, target.path)
    return data

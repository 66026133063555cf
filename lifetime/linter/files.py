"""Which files to check: those named, and those in folders named; and what a file is called."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from lifetime.linter.loader import unreadable
from lifetime.linter.result import Problem
from lifetime.linter.settings import Settings, below


class Target(NamedTuple):
    """A file to check: where it lies and how it is shown."""

    file: str
    path: str
    explicit: bool = False


class Found(NamedTuple):
    """The files to check, what was skipped by reason, and what could not be looked at."""

    targets: list[Target]
    skipped: Counter[str]
    problems: list[Problem]


def find(paths: Sequence[str], settings: Callable[[str], Settings]) -> Found:
    """The files to check, sorted by the path they are shown with. `settings` gives those of a folder.

    A file named in `paths` is always among them, unless its settings force the excludes on it.
    """
    found = Found([], Counter(), [])
    targets: dict[str, Target] = {}
    folders = [file for file in map(os.path.abspath, paths) if _take(file, found, targets, settings)]
    if folders:
        from lifetime.linter.walk import Walk

        Walk(folders, found, targets, settings).walk()
    found.targets[:] = sorted(targets.values(), key=lambda target: target.path)
    return found


def _take(file: str, found: Found, targets: dict[str, Target], settings: Callable[[str], Settings]) -> bool:
    """Takes in what was named; whether it is a folder."""
    try:
        mode = os.stat(file).st_mode
    except OSError as error:
        found.problems.append(Problem(shown(file), unreadable(error)))
        return False
    if stat.S_ISREG(mode):
        own = settings(os.path.dirname(file))
        if own.force_exclude and own.is_excluded(file):
            found.skipped["excluded file"] += 1
        else:
            targets[file] = Target(file, shown(file), explicit=True)
    elif not stat.S_ISDIR(mode):
        found.problems.append(Problem(shown(file), "is not a regular file"))
    return stat.S_ISDIR(mode)


def shown(file: str) -> str:
    """How a path is shown: relative to the working directory, POSIX; absolute when outside it."""
    full = os.path.abspath(file)
    relative = "." if full == os.getcwd() else below(os.getcwd(), full)
    return printable((full if relative is None else relative).replace(os.sep, "/"))


def printable(path: str) -> str:
    """A path that any output can hold: bytes that are no text are written as `\\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def project_name(file: str) -> str:
    """The path of `file` within its project, POSIX: what a fingerprint knows a file by, wherever the checkout lies."""
    relative = below(project(os.path.dirname(file)), file)
    return (file if relative is None else relative).replace(os.sep, "/")


@cache
def project(folder: str) -> str:
    """The root of the repository around `folder`, else the nearest folder with a pyproject.toml, else the working directory."""
    from lifetime.linter import git

    repository = git.repository(folder)
    if repository:
        return repository.root
    above = folder
    while not os.path.exists(os.path.join(above, "pyproject.toml")):
        if above == os.path.dirname(above):
            return os.getcwd()
        above = os.path.dirname(above)
    return above


def here() -> str:
    return os.getcwd()


def absolute(path: str) -> str:
    return os.path.abspath(path)


def folder(file: str) -> str:
    return os.path.dirname(file)

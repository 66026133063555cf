"""What a file is called: where it lies, how it is shown, and its name within its project."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from typing import NamedTuple

from lifetime.linter.result import Problem
from lifetime.linter.settings import below


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

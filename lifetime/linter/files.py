"""Which files to check: what was named, and what lies in named folders and is neither ignored nor excluded."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from lifetime.linter import git
from lifetime.linter.model import Problem
from lifetime.linter.patterns import Patterns
from lifetime.linter.settings import Settings, below

ENDINGS = (".py", ".pyi", ".pyw", ".ipynb")
NEVER = frozenset(
    (".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".lifetime_cache", ".mypy_cache", ".nox", ".pants.d")
    + (".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__")
    + ("__pypackages__", "node_modules", "site-packages")
)
"""Folders that hold nobody's own code; not worth a word unless they are named on the command line."""


@dataclass(frozen=True)
class Target:
    """A file to check: where it lies and how it is shown."""

    file: str
    path: str
    explicit: bool = False


@dataclass
class Found:
    targets: list[Target] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class IgnoreFile:
    """Patterns of a .gitignore and the folder they are relative to."""

    folder: str
    patterns: Patterns


@dataclass(frozen=True)
class Ignores:
    """What git would ignore at one place of the walk: the ignore files that apply, strongest last."""

    files: tuple[IgnoreFile, ...] = ()
    repository: git.Repository | None = None

    def inside(self, folder: str) -> Ignores:
        """The same one folder deeper. A repository within a repository starts anew."""
        nested = git.repository_at(folder)
        start = from_repository(nested) if nested and nested != self.repository else self
        own = git.ignore_file(os.path.join(folder, ".gitignore"))
        return Ignores((*start.files, IgnoreFile(folder, own)), start.repository) if own else start

    def match(self, file: str, is_folder: bool) -> bool:
        for each in reversed(self.files):
            verdict = each.patterns.verdict(below(each.folder, file) or "", is_folder)
            if verdict is not None:
                return verdict and not self._is_tracked(file)
        return False

    def _is_tracked(self, file: str) -> bool:
        """git never ignores what is in its index."""
        return bool(self.repository and below(self.repository.root, file) in self.repository.tracked)


def from_repository(repository: git.Repository) -> Ignores:
    return Ignores(tuple(IgnoreFile(repository.root, p) for p in repository.excludes), repository)


def find(paths: Sequence[str], settings: Callable[[str], Settings]) -> Found:
    """The files to check, sorted by the path they are shown with. `settings` gives those of a folder.

    A file named in `paths` is always among them, unless its settings force the excludes on it.
    """
    found = Found()
    walk = _Walk(found, settings)
    for path in paths:
        walk.start(path)
    found.targets = sorted(walk.targets.values(), key=lambda target: target.path)
    return found


class _Walk:
    def __init__(self, found: Found, settings: Callable[[str], Settings]) -> None:
        self.found = found
        self.settings = settings
        self.targets: dict[str, Target] = {}
        self.done: set[str] = set()

    def start(self, path: str) -> None:
        file = os.path.abspath(path)
        try:
            mode = os.stat(file).st_mode
        except OSError as error:
            self.problem(file, f"cannot be read: {(error.strerror or str(error)).lower()}")
            return
        if stat.S_ISDIR(mode):
            self.walk(file)
        elif not stat.S_ISREG(mode):
            self.problem(file, "is not a regular file")
        elif self._is_forced_out(file):
            self.found.skipped["excluded file"] += 1
        else:
            self.targets[file] = Target(file, shown(file), explicit=True)

    def problem(self, file: str, message: str) -> None:
        self.found.problems.append(Problem(shown(file), message))

    def _is_forced_out(self, file: str) -> bool:
        settings = self.settings(os.path.dirname(file))
        return settings.force_exclude and settings.is_excluded(file)

    def walk(self, top: str) -> None:
        waiting = [(top, ignores_above(top))]
        while waiting:
            folder, outer = waiting.pop()
            if folder in self.done:
                continue
            self.done.add(folder)
            ignores = outer.inside(folder)
            settings = self.settings(folder)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self.problem(folder, f"cannot be read: {(error.strerror or str(error)).lower()}")
                continue
            for entry in entries:
                if self.enter(entry, ignores, settings):
                    waiting.append((entry.path, ignores))

    def enter(self, entry: os.DirEntry[str], ignores: Ignores, settings: Settings) -> bool:
        """Takes note of one entry; whether it is a folder to walk into."""
        is_python = entry.name.endswith(ENDINGS)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in NEVER or not (is_folder or is_python or entry.is_symlink()):
            return False
        if entry.is_symlink() and not self.follow(entry, is_python):
            return False
        kind = "folder" if is_folder else "file"
        if settings.is_excluded(entry.path, is_folder):
            self.found.skipped[f"excluded {kind}"] += 1
        elif ignores.match(entry.path, is_folder):
            self.found.skipped[f"git-ignored {kind}"] += 1
        elif is_folder and os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
            self.found.skipped["virtual environment"] += 1
        elif is_folder:
            return True
        elif entry.is_file():
            self.targets.setdefault(entry.path, Target(entry.path, shown(entry.path)))
        return False

    def follow(self, entry: os.DirEntry[str], is_python: bool) -> bool:
        """Whether a symbolic link leads to a file to check. Links to folders are not followed; one that loops is a problem."""
        try:
            mode = entry.stat().st_mode
        except FileNotFoundError:
            if is_python:
                self.found.skipped["dangling link"] += 1
            return False
        except OSError as error:
            self.problem(entry.path, f"cannot be read: {(error.strerror or str(error)).lower()}")
            return False
        if stat.S_ISDIR(mode):
            target = os.path.realpath(entry.path)
            if below(target, os.path.realpath(os.path.dirname(entry.path)) + "/x"):
                self.problem(entry.path, "is a symbolic link to a folder that holds it: not followed")
            else:
                self.found.skipped["linked folder"] += 1
        return is_python and stat.S_ISREG(mode)


def ignores_above(folder: str) -> Ignores:
    """What applies in `folder` from the folders above it, up to the root of its repository."""
    repository = git.repository(folder)
    if repository is None or repository.root == folder:
        return from_repository(repository) if repository else Ignores()
    ignores = from_repository(repository)
    between = (below(repository.root, folder) or "").split("/")[:-1]
    for depth in range(len(between) + 1):
        ignores = ignores.inside(os.path.join(repository.root, *between[:depth]))
    return ignores


def shown(file: str) -> str:
    """How a path is shown: relative to the working directory, POSIX; absolute when outside it."""
    full = os.path.abspath(file)
    relative = "." if full == os.getcwd() else below(os.getcwd(), full)
    path = (full if relative is None else relative).replace(os.sep, "/")
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def project_name(file: str) -> str:
    """The path of `file` within its project, POSIX: what a fingerprint knows a file by, wherever the checkout lies."""
    relative = below(project(os.path.dirname(file)), file)
    return (file if relative is None else relative).replace(os.sep, "/")


@cache
def project(folder: str) -> str:
    """The root of the repository around `folder`, else the nearest folder with a pyproject.toml, else the working directory."""
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

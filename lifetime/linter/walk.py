"""The walk through folders: what lies in them and is neither ignored by git nor excluded."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container
from typing import NamedTuple

from lifetime.linter import git
from lifetime.linter.loader import unreadable
from lifetime.linter.patterns import Patterns
from lifetime.linter.places import Found, Target, printable, shown
from lifetime.linter.regular import NO_REGULAR_FILE
from lifetime.linter.result import Problem
from lifetime.linter.settings import Settings, below

ENDINGS = (".py", ".pyi", ".pyw", ".ipynb")
NEVER = frozenset(
    (".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".lifetime_cache", ".mypy_cache", ".nox", ".pants.d")
    + (".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__")
    + ("__pypackages__", "node_modules", "site-packages")
)
"""Folders that hold nobody's own code; not worth a word unless they are named on the command line."""


class IgnoreFile(NamedTuple):
    """Patterns of a .gitignore and the folder they are relative to."""

    folder: str
    patterns: Patterns


class Ignores(NamedTuple):
    """What git would ignore at one place of the walk: the ignore files that apply, strongest last."""

    files: tuple[IgnoreFile, ...] = ()
    repository: git.Repository | None = None

    def inside(self, folder: str, names: Container[str]) -> Ignores:
        """The same one folder deeper; `names` are in it. A repository within a repository starts anew."""
        nested = git.repository_at(folder) if ".git" in names else None
        start = from_repository(nested) if nested and not (self.repository and nested.root == self.repository.root) else self
        own = git.ignore_file(os.path.join(folder, ".gitignore")) if ".gitignore" in names else None
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


def ignores_above(folder: str) -> Ignores:
    """What applies in `folder` from the folders above it, up to the root of its repository."""
    repository = git.repository(folder)
    if repository is None or repository.root == folder:
        return from_repository(repository) if repository else Ignores()
    ignores = from_repository(repository)
    between = (below(repository.root, folder) or "").split("/")[:-1]
    for depth in range(len(between) + 1):
        ignores = ignores.inside(os.path.join(repository.root, *between[:depth]), (".git", ".gitignore"))
    return ignores


class Walk:
    """Adds the files below folders to `targets`; what was named there before stays as it is."""

    def __init__(self, tops: list[str], found: Found, targets: dict[str, Target], settings: Callable[[str], Settings]) -> None:
        self.tops = tops
        self.prefix = ""
        self.found = found
        self.settings = settings
        self.targets = targets
        self.links: list[str] = []
        self.done: set[str] = set()

    def problem(self, file: str, message: str) -> None:
        self.found.problems.append(Problem(shown(file), message))

    def walk(self) -> None:
        waiting = [(top, ignores_above(top)) for top in reversed(self.tops)]
        while waiting:
            folder, outer = waiting.pop()
            if folder not in self.done:
                self.done.add(folder)
                waiting += self.look(folder, outer)
        self.drop_links()

    def look(self, folder: str, outer: Ignores) -> list[tuple[str, Ignores]]:
        """Takes in the files of one folder; the folders in it to walk into, and what git ignores in this one."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self.problem(folder, unreadable(error))
            return []
        names = {entry.name for entry in entries}
        if "pyvenv.cfg" in names and folder not in self.tops:
            self.found.skipped["virtual environment"] += 1
            return []
        ignores = outer.inside(folder, names)
        if any(e.name == ".gitignore" and not e.is_file() and not e.is_dir() for e in entries):
            self.problem(os.path.join(folder, ".gitignore"), NO_REGULAR_FILE)
        settings = self.settings(folder)
        self.prefix = "" if shown(folder) == "." else f"{shown(folder)}/"
        return [(entry.path, ignores) for entry in entries if self.enter(entry, ignores, settings)]

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
        elif is_folder:
            return True
        elif entry.is_file():
            self.targets.setdefault(entry.path, Target(entry.path, self.prefix + printable(entry.name)))
        else:
            self.found.skipped["special file"] += 1
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
            self.problem(entry.path, unreadable(error))
            return False
        if stat.S_ISDIR(mode):
            target = os.path.realpath(entry.path)
            if below(target, os.path.realpath(os.path.dirname(entry.path)) + "/x"):
                self.problem(entry.path, "is a symbolic link to a folder that holds it: not followed")
            else:
                self.found.skipped["linked folder"] += 1
        self.links.append(entry.path)
        return is_python and stat.S_ISREG(mode)

    def drop_links(self) -> None:
        """Lets go of links to files that are checked anyway under their own name."""
        for link in self.links:
            if link in self.targets and not self.targets[link].explicit and os.path.realpath(link) in self.targets:
                del self.targets[link]
                self.found.skipped["linked file"] += 1

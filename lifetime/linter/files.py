"""Which files to check: those named, and those in folders named."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Sequence

from lifetime.linter.loader import unreadable
from lifetime.linter.places import Found, Target, shown
from lifetime.linter.result import Problem
from lifetime.linter.settings import Settings


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

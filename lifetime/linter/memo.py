"""Files of a large tree that hold nothing a rule looks for, known again by their inode: neither read nor searched twice.

Only this one answer is kept, and only where `stat` cannot lie: size, inode and both times must agree to the nanosecond, and a
file that changed within the last seconds is not kept, since it could change again within one tick of the clock. Elsewhere, or
on another machine, no entry fits, which costs time and nothing else.
"""

from __future__ import annotations

import os
import time

from lifetime.linter.regular import opened

SETTLED_NS = 2_000_000_000


class Memo:
    """What earlier runs knew, and what this one learns. `folder` is that of the cache, empty for none."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.now = time.time_ns()
        self.old: dict[str, str] = {}
        self.new: dict[str, str] = {}
        self.is_loaded = False

    def knows(self, file: str, codes: frozenset[str]) -> int | None:
        """The size of `file` when nothing in it is what the rules look for; None when it must be looked at."""
        if not self.folder:
            return None
        try:
            found = os.stat(file)
        except OSError:
            return None
        rules = sum(1 << int(code[2:]) for code in codes)
        mark = f"{found.st_size} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns} {rules:x}"
        if max(found.st_mtime_ns, found.st_ctime_ns) < self.now - SETTLED_NS:
            self.new[file] = mark  # taken back by `forget` when it turns out to hold something
        return found.st_size if self._load().get(file) == mark else None

    def forget(self, file: str) -> None:
        self.new.pop(file, None)

    def _load(self) -> dict[str, str]:
        if not self.is_loaded and os.path.exists(self._file()):
            self.old = _read(self._file())
        self.is_loaded = True
        return self.old

    def save(self) -> None:
        """Keeps what is known for the next run; where the folder cannot be written, nothing."""
        if not self.folder or self.new.items() <= self.old.items():
            return
        import json

        from lifetime.errors import LifetimeError
        from lifetime.files import write_whole
        from lifetime.linter import cache

        try:
            cache.prepare(self.folder)
            others = {file: mark for file, mark in self.old.items() if file not in self.new and os.path.exists(file)}
            write_whole(self._file(), json.dumps({**others, **self.new}))
        except (OSError, LifetimeError):
            return

    def _file(self) -> str:
        from lifetime.linter import cache

        return os.path.join(self.folder, cache.stamp()[:12], "nothing-to-look-at.json")


def _read(file: str) -> dict[str, str]:
    import json

    try:
        with open(file, encoding="utf-8", opener=opened) as handle:
            found = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

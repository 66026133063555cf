"""What git knows of a folder, read from its files: the repository's root, its ignore files, and which files are tracked."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING

from lifetime.linter.regular import opened

if TYPE_CHECKING:
    from lifetime.linter.patterns import Patterns

EXCLUDES_FILE = re.compile(r"(?im)^\s*excludesfile\s*=\s*\"?([^\"\n]+?)\"?\s*$")


class Repository:
    """A work tree. `folder` is its `.git` folder (for a linked work tree, its own one)."""

    def __init__(self, root: str, folder: str) -> None:
        self.root = root
        self.folder = folder

    @cached_property
    def excludes(self) -> tuple[Patterns, ...]:
        """The user's and the repository's own patterns, weakest first."""
        common = os.path.join(self.folder, _line(os.path.join(self.folder, "commondir")))
        files = (users_excludes(), os.path.join(common, "info", "exclude"))
        return tuple(found for file in files if (found := ignore_file(file)))

    @cached_property
    def tracked(self) -> frozenset[str]:
        """Files in the index and the folders that hold them, relative to the root; empty where it cannot be read."""
        try:
            with open(os.path.join(self.folder, "index"), "rb", opener=opened) as file:
                files = index_paths(file.read())
        except (OSError, IndexError, ValueError):
            return frozenset()
        return frozenset(files) | {p[:at] for p in files for at in range(len(p)) if p[at] == "/"}


def repository(folder: str) -> Repository | None:
    """The repository whose work tree holds `folder`."""
    while True:
        if found := repository_at(folder):
            return found
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def repository_at(folder: str) -> Repository | None:
    """The repository whose root is `folder` itself."""
    dot = os.path.join(folder, ".git")
    if os.path.isdir(dot):
        return Repository(folder, dot)
    pointer = _line(dot).removeprefix("gitdir:").strip()
    return Repository(folder, os.path.normpath(os.path.join(folder, pointer))) if pointer else None


def ignore_file(file: str) -> Patterns | None:
    from lifetime.linter.patterns import patterns

    try:
        with open(file, encoding="utf-8", errors="surrogateescape", opener=opened) as handle:
            found = patterns(handle)
    except OSError:
        return None
    return found if found.all else None


def users_excludes() -> str:
    """`core.excludesFile` of the user's configuration, or its default place."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    for config in (os.path.expanduser("~/.gitconfig"), os.path.join(home, "git", "config")):
        try:
            with open(config, encoding="utf-8", errors="replace", opener=opened) as file:
                named = EXCLUDES_FILE.search(file.read())
        except OSError:
            continue
        if named:
            return os.path.expanduser(named[1])
    return os.path.join(home, "git", "ignore")


def index_paths(data: bytes) -> list[str]:
    """The paths in a git index.

    Raises:
        ValueError, IndexError: it is not an index of version 2 to 4.

    Source: git's Documentation/gitformat-index.txt.
    """
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not a git index")
    at, paths, last = 12, [], b""
    for _ in range(int.from_bytes(data[8:12], "big")):
        start, flags = at, int.from_bytes(data[at + 60 : at + 62], "big")
        at += 64 if flags & 0x4000 else 62
        if version == 4:
            drop, at = _varint(data, at)
            end = data.index(b"\0", at)
            last = last[: len(last) - drop] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            last = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        paths.append(os.fsdecode(last))
    return paths


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """git's offset encoding: seven bits a byte, each continuation adds one."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _line(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace", opener=opened) as handle:
            return handle.readline().strip()
    except OSError:
        return ""

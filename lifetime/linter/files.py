"""Which files to check."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence


def find(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(file on disk, path to show) of every Python file."""
    for path in paths:
        if os.path.isdir(path):
            for top, folders, names in os.walk(path):
                folders.sort()
                for name in sorted(names):
                    if name.endswith((".py", ".pyi")):
                        yield os.path.join(top, name), shown(os.path.join(top, name))
        else:
            yield path, shown(path)


def shown(file: str) -> str:
    """Relative to the working directory, POSIX; absolute when outside it."""
    full = os.path.abspath(file)
    here = os.path.join(os.getcwd(), "")
    return (full[len(here) :] if full.startswith(here) else full).replace(os.sep, "/")

"""Paths as CI systems want them: from the root of the repository."""

from __future__ import annotations

import posixpath
from urllib.parse import quote


def from_root(path: str, base: str) -> str:
    """`path`, which is relative to the folder `base` of the repository, relative to its root; absolute ones stay as they are."""
    return path if posixpath.isabs(path) else posixpath.normpath(posixpath.join(base, path))


def uri(path: str, base: str) -> str:
    """The same as a URI reference: relative, or `file://` for a path outside the repository."""
    full = from_root(path, base)
    return f"file://{quote(full)}" if posixpath.isabs(full) else quote(full)

"""What the static pass says: findings, fixes and where they stand. No libcst, no torch, no formatting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lifetime.linter.severity import Severity

HOLDER_MARK = re.compile(r"#\s*lifetime: holder ([0-9a-f]{6,64})\b")
"""The first line of a comment that names a release's holder by the fingerprint of a trace; the lines under it belong to it."""

__all__ = ["Edit", "Finding", "Fix", "Safety", "Severity", "Span"]


class Safety(str, Enum):
    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, order=True)
class Span:
    """A range of source. Lines are 1-based, columns 0-based and counted in characters (as LibCST does); the end is exclusive.

    `report/` adds 1 to the columns: what users and other programs see is 1-based throughout.
    """

    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Edit:
    """Replace the text in `span` by `text`."""

    span: Span
    text: str


@dataclass(frozen=True)
class Fix:
    """A change that removes a finding. `reason` says why it is unsafe; it is empty when it is safe."""

    title: str
    safety: Safety
    edits: tuple[Edit, ...]
    reason: str = ""


@dataclass(frozen=True)
class Finding:
    """One defect at one place.

    `function` is the qualified name of the innermost enclosing function, None at module level. `evidence` holds plain JSON
    values, whose keys each rule documents (for LT001: `leaves`, `readers`, `capture`, `escape`). What follows it the engine
    fills in: `fingerprint` is stable under edits elsewhere in the file; `excerpt` holds the source lines around it, from
    `excerpt_line` on; `cell` is the 1-based cell of a notebook, to which the lines are then relative, 0 elsewhere.
    """

    code: str
    name: str
    severity: Severity
    path: str
    span: Span
    function: str | None
    message: str
    fingerprint: str = ""
    fix: Fix | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    excerpt: tuple[str, ...] = ()
    excerpt_line: int = 0
    cell: int = 0

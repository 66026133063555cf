"""What a lint run comes to. Apart from `model`, and of named tuples, so that a run that finds nothing starts fast: `dataclasses`
alone takes a sixth of the time that checking one clean file may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lifetime.linter.model import Finding

NONE: Mapping[str, int] = {}


class Problem(NamedTuple):
    """What could not be checked, and why: one sentence. `line` is 1-based, 0 when no line is to blame."""

    path: str
    message: str
    line: int = 0


class LintResult(NamedTuple):
    """Everything one lint run has to say.

    `checked` and `skipped` count files; `skipped` maps a reason to its count. A file with a problem is neither clean nor
    skipped: it makes the exit code 2. Of those checked, `by_bytes` hold nothing that a rule looks for and were, in a large run,
    not parsed. `suppressed` counts findings excused by a keep comment, a baseline or a refuting report.
    """

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    checked: int = 0
    skipped: Mapping[str, int] = NONE
    suppressed: Mapping[str, int] = NONE
    fixed: int = 0
    by_bytes: int = 0

    @property
    def exit_code(self) -> int:
        return 2 if self.problems else int(bool(self.findings))

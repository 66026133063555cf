"""What a rule is: a code, a claim made of examples, and one function that finds the defect."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from lifetime.linter.model import Finding, Fix, Severity
from lifetime.linter.module import Module


@dataclass(frozen=True)
class Bad:
    """Source that has the defect. `lines` are the 1-based lines of the findings; `fixed` is what `--fix --unsafe-fixes` makes of
    it."""

    source: str
    lines: tuple[int, ...]
    fixed: str | None = None
    also: tuple[str, ...] = ()
    """Codes of other rules that rightly speak about this example too."""


@dataclass(frozen=True)
class Good:
    """Source that looks like the defect and is not, and why."""

    source: str
    because: str
    also: tuple[str, ...] = ()


class Rule(ABC):
    """One defect. The class docstring is the rule's page: first line `CODE: the defect in one sentence.`, then the
    paragraphs *Why*, *Fix safety* and *Source*; examples live in `bad` and `good`.

    `needles` is the byte-level gate: the rule runs on a file only if for one of the groups every pattern (a regular
    expression over bytes) is found in it. `linter/gate.py` repeats the union, so that a clean file imports no rule at all.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = Severity.WARNING
    default: ClassVar[bool] = True
    last: ClassVar[bool] = False
    """Runs after the others, because it judges what they said."""
    needles: ClassVar[tuple[tuple[bytes, ...], ...]]
    bad: ClassVar[tuple[Bad, ...]]
    good: ClassVar[tuple[Good, ...]]

    @abstractmethod
    def check(self, module: Module) -> Iterable[Finding]:
        """Every place in `module` that has the defect, in any order."""

    def finding(
        self,
        module: Module,
        node: ast.expr | ast.stmt,
        message: str,
        *,
        fix: Fix | None = None,
        severity: Severity | None = None,
        evidence: Mapping[str, object] | None = None,
    ) -> Finding:
        return Finding(
            code=self.code,
            name=self.name,
            severity=severity or self.severity,
            path=module.path,
            span=module.span(node),
            function=module.qualified(node),
            message=message,
            fix=fix,
            evidence=evidence or {},
        )

"""Fixes made until none is left: a clashing edit waits for the next round, and a fix that does harm is refused."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lifetime.errors import SourceError
from lifetime.linter import edits
from lifetime.linter.check import Checked, Place, examine
from lifetime.linter.loader import Document, Text
from lifetime.linter.model import Finding, Fix, Safety
from lifetime.linter.result import Problem
from lifetime.linter.settings import Selection, selected

ROUNDS = 100


@dataclass(frozen=True)
class Repaired:
    """A document after its fixes, what was fixed, and what the rules say about it now."""

    document: Document
    fixed: tuple[Finding, ...]
    checked: Checked


def apply(source: str, fixes: Iterable[Fix | Finding], *, unsafe: bool) -> str:
    """`source` with those of `fixes` made that may be and that do not overlap (the first come first)."""
    wanted = [fix for each in fixes if (fix := each.fix if isinstance(each, Finding) else each)]
    chosen = edits.compatible(fix for fix in wanted if unsafe or fix.safety is Safety.SAFE)
    return edits.splice(source, [edit for fix in chosen for edit in fix.edits])


def fix_source(
    source: str, path: str, *, select: Sequence[str] | None = None, unsafe: bool = False, file: str = ""
) -> tuple[str, tuple[Finding, ...]]:
    """The fixed text, and what was fixed.

    Raises:
        SourceError: `source` does not parse.
    """
    codes = selected((Selection(select=tuple(select or ())),))
    repaired = repair(Text(source), Place(path, file, path), codes, unsafe=unsafe)
    return repaired.document.source, repaired.fixed


def repair(document: Document, place: Place, codes: Collection[str], *, unsafe: bool) -> Repaired:
    """The document with all fixes made that may be.

    Raises:
        SourceError: it does not parse.
    """
    checked = examine(document, place, codes)
    fixed: list[Finding] = []
    refused: list[Finding] = []
    for _ in range(ROUNDS):
        chosen = _chosen(checked.findings, {f.fingerprint for f in refused}, unsafe)
        if not chosen:
            break
        after = _made(document, checked, chosen, place, codes)
        if after is None and len(chosen) > 1:
            chosen = chosen[:1]
            after = _made(document, checked, chosen, place, codes)
        if after is None:
            refused += chosen
        else:
            fixed += chosen
            document, checked = after
    problems = tuple(_refusal(place.path, document, finding) for finding in refused)
    return Repaired(document, tuple(fixed), replace(checked, problems=checked.problems + problems))


def _chosen(findings: Iterable[Finding], refused: Collection[str], unsafe: bool) -> list[Finding]:
    """The findings whose fixes can be made in one round."""
    able = [f for f in findings if f.fix and f.fingerprint not in refused and (unsafe or f.fix.safety is Safety.SAFE)]
    together = {id(fix) for fix in edits.compatible(f.fix for f in able if f.fix)}
    return [f for f in able if id(f.fix) in together]


def _made(
    document: Document, before: Checked, chosen: list[Finding], place: Place, codes: Collection[str]
) -> tuple[Document, Checked] | None:
    """The document after one round; None when the result is no longer a program, or no better than before."""
    try:
        new = document.splice(edit for finding in chosen if finding.fix for edit in finding.fix.edits)
        new.encode()
        after = examine(new, place, codes)
    except (SourceError, UnicodeEncodeError):
        return None
    was, now = (Counter(f.code for f in each.findings) for each in (before, after))
    if any(now[f.code] >= was[f.code] for f in chosen) or (_compiles(document) and not _compiles(new)):
        return None
    return new, after


def _compiles(document: Document) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(document.source, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _refusal(path: str, document: Document, finding: Finding) -> Problem:
    prefix, line = document.where(finding.span.start_line)
    return Problem(path, f"{prefix}the fix of {finding.code} does not help and was not made; please report it", line)

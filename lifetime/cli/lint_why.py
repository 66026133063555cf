"""`lifetime lint --why PATH:LINE`: why there is a finding on a line, or why there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lifetime.config import Resolver
from lifetime.errors import SourceError, UsageError
from lifetime.linter import gate, loader, places
from lifetime.linter.documents import document as read_document
from lifetime.linter.edits import LINE
from lifetime.linter.settings import Settings

if TYPE_CHECKING:
    from lifetime.linter.loader import Document
    from lifetime.linter.module import Module


def why(place: str, resolver: Resolver) -> int:
    """Prints the explanation. Exit code 0: an explanation is no finding.

    Raises:
        UsageError: `place` is not PATH:LINE, or there is no such line.
        SourceError: the file cannot be read or parsed.
    """
    path, _, number = place.rpartition(":")
    if not path or not number.isdigit() or len(number) > 9:
        raise UsageError(f"--why {place}: not PATH:LINE", "--why train.py:120")
    file = os.path.abspath(path)
    try:
        for line in explanation(file, int(number), resolver.settings(os.path.dirname(file))):
            print(line)
    except SourceError as error:
        raise SourceError(f"{places.shown(file)}: {error.message}", path, error.line) from None
    return 0


def explanation(file: str, line: int, settings: Settings) -> Iterator[str]:
    data = loader.read(file)
    shown = places.shown(file)
    document = read_document(data, shown)
    text = LINE.findall(document.source)
    if not 1 <= line <= len(text):
        raise UsageError(f"{shown} has {len(text)} lines", "--why PATH:LINE")
    yield f"{shown}:{line}: {text[line - 1].strip()}"
    yield from (f"- {reason}" for reason in _reasons(file, line, document, settings))


def _reasons(file: str, line: int, document: Document, settings: Settings) -> Iterator[str]:
    from lifetime.linter import suppress
    from lifetime.linter.check import check
    from lifetime.linter.module import Module
    from lifetime.linter.why import explain_line

    shown = places.shown(file)
    if settings.is_excluded(file):
        yield "the file is excluded: it is checked only where it is named on the command line"
    codes, every = settings.codes(file), frozenset(rule.code for rule in gate.RULES)
    module = Module(shown, document.source, loader.tree(document, shown), file)
    check(module, every, shown)
    findings = [finding for found in module.raw.values() for finding in found]
    here = [f for f in findings if f.span.start_line <= line <= f.span.end_line]
    excused = {id(f): keep for keep in suppress.keeps(module) for c in keep.codes for f in suppress.matches(keep, c, findings)}
    for finding in here:
        yield f"{finding.code} {finding.message}"
        if finding.code not in codes:
            yield f"{finding.code} is off for this file (see --select, --extend-select and per-file-ignores)"
        if id(finding) in excused:
            yield f"excused on line {excused[id(finding)].span.start_line}: {excused[id(finding)].reason}"
    yield from explain_line(module, line)
    if not here:
        yield from _silence(module, line, codes)


def _silence(module: Module, line: int, codes: frozenset[str]) -> Iterator[str]:
    from lifetime.linter.why_not import reasons

    known = reasons(module, line, codes)
    yield from known
    if known:
        return
    hit = gate.hits(module.source.encode("utf-8", "surrogatepass"), codes, module.path)
    if not hit:
        yield "nothing in this file is what a rule looks for"
    else:
        yield f"no rule speaks about this line; looked at by {', '.join(sorted(hit))}"

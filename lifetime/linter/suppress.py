"""Keep comments: `# lifetime: keep[LT001] reason`, which lines they excuse and what is wrong with them."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from lifetime.linter.model import Finding, Span
from lifetime.linter.module import Module

MARK = re.compile(r"#\s*lifetime\s*:\s*keep\b")
KEEP = re.compile(r"#\s*lifetime\s*:\s*keep\b(?:\[(?P<codes>[^\]#]*)\])?(?P<reason>(?:(?!\s#\s).)*)")


@dataclass(frozen=True)
class Keep:
    """One excuse. `span` is the comment from its `#` to the end of the reason; `first` to `last` is the logical line it
    stands on, or the one below it when it stands alone."""

    span: Span
    codes: tuple[str, ...]
    reason: str
    first: int
    last: int

    @property
    def is_valid(self) -> bool:
        return bool(self.codes and self.reason)


def keeps(module: Module) -> tuple[Keep, ...]:
    """All keep comments of a module, in order; text in strings is none."""
    if not MARK.search(module.source):
        return ()
    return tuple(_keeps("\n".join(module.lines)))


def _keeps(source: str) -> Iterator[Keep]:
    waiting: list[tuple[int, int, str]] = []
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            row = token.start[0]
            if token.type == tokenize.COMMENT:
                waiting += [(row, token.start[1] + m.start(), m[0]) for m in KEEP.finditer(token.string)]
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                yield from (_keep(*each, first or row, row) for each in waiting)
                waiting, first = [], 0
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first = first or row
    except (tokenize.TokenError, SyntaxError):  # `ast` has the last word on what parses
        return


def _keep(row: int, column: int, text: str, first: int, last: int) -> Keep:
    parts = KEEP.match(text)
    assert parts is not None  # it is the match that found the comment
    codes = tuple(c.strip() for c in (parts["codes"] or "").split(",") if c.strip())
    end = column + len(text.rstrip())
    return Keep(Span(row, column, row, end), codes, parts["reason"].strip(" \t:-"), first, last)


def matches(keep: Keep, code: str, findings: Iterable[Finding]) -> list[Finding]:
    """Findings of `code` that the comment speaks about: those whose lines include the comment's own, else those on its
    logical line (so that a comment behind the closing bracket counts)."""
    if not keep.is_valid:
        return []
    row = keep.span.start_line
    own = [f for f in findings if code in (f.code, f.name)]
    near = [f for f in own if f.span.start_line <= row <= f.span.end_line]
    return near or [f for f in own if f.span.start_line <= keep.last and f.span.end_line >= keep.first]


def unexcused(module: Module, findings: Collection[Finding]) -> list[Finding]:
    """The findings that no keep comment excuses. An excuse itself (LT000) cannot be excused."""
    excused = {id(f) for keep in keeps(module) for code in keep.codes for f in matches(keep, code, findings)}
    return [f for f in findings if id(f) not in excused or f.code == "LT000"]

"""One source file as the rules see it: its text, its syntax tree and the facts that every rule needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lifetime.linter.model import Finding, Span
from lifetime.linter.nodes import parents

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Module:
    """A parsed file. `path` is as it is shown to the user; `file` is where it lies on disk (empty for standard input).

    Derived facts are computed on first use, so a rule that is not interested pays nothing.
    """

    path: str
    source: str
    tree: ast.Module
    file: str = ""
    loads: set[str] = field(default_factory=set)
    """Files that were read to resolve imports: part of the cache key."""
    memo: dict[str, object] = field(default_factory=dict, repr=False, compare=False)
    """Results that several rules share, by the name of who computed them."""
    raw: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    """What each rule that has run on this file said, before any excuse; only LT000, which runs last, looks."""

    @cached_property
    def plain(self) -> str:
        """The source with \\n as its only line end: what is searched as text, where only lines matter."""
        return self.source.replace("\r\n", "\n").replace("\r", "\n") if "\r" in self.source else self.source

    @cached_property
    def lines(self) -> list[str]:
        """Lines as `ast` counts them: only \\n, \\r\\n and \\r end a line, a form feed does not."""
        return self.plain.split("\n")

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return parents(self.tree)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node, level by level."""
        return [self.tree, *self.parents]

    @cached_property
    def functions(self) -> list[Function]:
        return [n for n in self.nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """The innermost function that contains `node` (not `node` itself)."""
        for outer in self.ancestors(node):
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return outer
        return None

    def enclosing_class(self, node: ast.AST) -> ast.ClassDef | None:
        for outer in self.ancestors(node):
            if isinstance(outer, ast.ClassDef):
                return outer
        return None

    def qualified(self, node: ast.AST) -> str | None:
        """`Class.method` of the innermost function around `node` or of `node` itself; None at module level."""
        chain = [node, *self.ancestors(node)]
        while chain and not isinstance(chain[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            chain.pop(0)
        named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return ".".join(n.name for n in reversed(chain) if isinstance(n, named)) or None

    def column(self, line: int, offset: int) -> int:
        """`ast` counts columns in UTF-8 bytes; spans count characters."""
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt | ast.excepthandler | ast.arg | ast.keyword) -> Span:
        last_line = node.end_lineno or node.lineno
        last_offset = node.end_col_offset or node.col_offset
        return Span(node.lineno, self.column(node.lineno, node.col_offset), last_line, self.column(last_line, last_offset))

    def text(self, node: ast.AST) -> str:
        """The source of `node` as written; unparsed where that is not possible."""
        if not isinstance(node, (ast.expr, ast.stmt)) or not self.source:
            return ast.unparse(node)
        # `ast.get_source_segment` splits the whole file into lines at every call.
        span = self.span(node)
        lines = self.lines[span.start_line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.start_column :]
        return "\n".join(lines)

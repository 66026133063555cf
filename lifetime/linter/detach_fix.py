"""Inserts `.detach()` where a value with a graph enters an expression."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from lifetime.linter.model import Edit, Span
from lifetime.linter.module import Module

BINDS_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def detached(module: Module, node: ast.expr, carries: Callable[[ast.expr], bool]) -> tuple[Edit, ...]:
    """Edits that detach each part of `node` that carries a graph; none where a part cannot simply be given a suffix."""
    parts = list(_parts(node, carries))
    if any(part is None for part in parts):
        return ()
    return tuple(_suffix(module, part) for part in parts if part is not None)


def _suffix(module: Module, node: ast.expr) -> Edit:
    span = module.span(node)
    end = Span(span.end_line, span.end_column, span.end_line, span.end_column)
    return Edit(end, ".detach()")


def _parts(node: ast.expr, carries: Callable[[ast.expr], bool]) -> Iterator[ast.expr | None]:
    match node:
        case ast.BinOp():
            yield from _each([node.left, node.right], carries)
        case ast.UnaryOp():
            yield from _parts(node.operand, carries)
        case ast.List() | ast.Tuple() | ast.Set():
            yield from _each(node.elts, carries)
        case ast.Dict():
            yield from _each(node.values, carries)
        case _:
            yield node if isinstance(node, BINDS_TIGHT) else None


def _each(nodes: list[ast.expr], carries: Callable[[ast.expr], bool]) -> Iterator[ast.expr | None]:
    for node in nodes:
        if carries(node):
            yield from _parts(node, carries)

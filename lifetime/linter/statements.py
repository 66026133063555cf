"""Statements of a file without a look at its expressions: far fewer nodes than `ast.walk` visits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.module import Function, Module

INNER = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(root: ast.AST) -> Iterator[tuple[ast.stmt, ast.ClassDef | None]]:
    """Every statement below `root` with the innermost class around it."""
    stack: list[tuple[ast.AST, ast.ClassDef | None]] = [(root, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, ast.stmt):
            yield node, owner
        inside = node if isinstance(node, ast.ClassDef) else owner
        stack.extend((child, inside) for child in children(node))


def children(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases right below `node`, last first: as a stack wants them."""
    found: list[ast.AST] = []
    parts = node.__dict__
    for name in INNER:
        if name in parts:
            found += parts[name]
    found.reverse()
    return found


def all_statements(module: Module) -> list[tuple[ast.stmt, ast.ClassDef | None]]:
    """`statements` of the whole file, found once."""
    if "statements" not in module.memo:
        module.memo["statements"] = list(statements(module.tree))
    found = module.memo["statements"]
    assert isinstance(found, list)
    return found


def functions(module: Module) -> Iterator[Function]:
    for node, _ in all_statements(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node

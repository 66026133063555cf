"""Which statements surely run after a given one: what follows in its block and in the blocks around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.module import Module
from lifetime.linter.statements import all_statements

BLOCKS = ("body", "orelse", "finalbody")
Loop = (ast.For, ast.AsyncFor, ast.While)
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
LEAVES = (ast.Return, ast.Break, ast.Continue)


def statement_of(module: Module, node: ast.AST) -> ast.stmt | None:
    """The innermost statement that contains `node`."""
    if isinstance(node, ast.stmt):
        return node
    return next((n for n in module.ancestors(node) if isinstance(n, ast.stmt)), None)


def block_of(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """The list of statements in which `statement` stands."""
    parent = module.parents.get(statement)
    for name in BLOCKS:
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def rest_of(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    block = block_of(module, statement)
    return block[block.index(statement) + 1 :]


def afterwards(module: Module, statement: ast.stmt) -> Iterator[ast.stmt]:
    """Statements that run after `statement` on every way out of its function, nearest first; behind one that may leave early,
    only those under `finally`."""
    node: ast.AST | None = statement
    left = False
    while isinstance(node, ast.stmt) and not isinstance(node, Scope):
        parent = module.parents.get(node)
        for following in [] if left else rest_of(module, node):
            yield following
            if isinstance(following, ast.Try):
                yield from following.finalbody
            if left := may_leave(module, following):
                break
        if isinstance(parent, ast.Try) and node not in parent.finalbody:
            yield from parent.finalbody
        node = parent


def may_leave(module: Module, statement: ast.stmt) -> bool:
    """Whether a return, break or continue stands in `statement` (asked often, so found once for the whole file)."""
    if "leaving" not in module.memo:
        leaving: set[ast.AST] = set()
        for node, _ in all_statements(module):
            if isinstance(node, LEAVES):
                ends = Scope if isinstance(node, ast.Return) else (*Scope, *Loop)
                leaving.add(node)
                for outer in module.ancestors(node):
                    if isinstance(outer, ends):
                        break
                    leaving.add(outer)
        module.memo["leaving"] = leaving
    known = module.memo["leaving"]
    return isinstance(known, set) and statement in known


def unconditional(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of `block` and of the with-blocks in it: they run whenever it does."""
    for statement in block:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from unconditional(statement.body)


def inner_loop_or_scope(module: Module, node: ast.AST) -> ast.AST:
    """The nearest loop, function or file around `node`."""
    return next((n for n in module.ancestors(node) if isinstance(n, (*Loop, *Scope))), module.tree)

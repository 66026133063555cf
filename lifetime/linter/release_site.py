"""Where a release can go: behind the harvest, and behind what still reads the same leaves."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from lifetime.linter.blocks import Loop, block_of, statement_of
from lifetime.linter.module import Function, Module
from lifetime.linter.release_order import holders, looks_beyond, loops_around, renews

HEADS = (ast.While, ast.With, ast.AsyncWith, ast.Match, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""In the head of these there is no place that is surely reached once and behind the read."""


@dataclass(frozen=True)
class Site:
    """Where a release can go: behind `anchor`, the last statement of the block that reads the same leaves. `statement` is the
    harvest, or the loop around it that reads the same leaves in every round."""

    statement: ast.stmt
    anchor: ast.stmt
    function: Function


def harvest_of(module: Module, reads: list[tuple[ast.expr, ast.expr]]) -> ast.stmt | None:
    """The statement behind which the leaves of `reads` (each with the expression of its leaves) were looked at as often as they
    will be; None where that is not certain."""
    statement = statement_of(module, reads[0][0])
    function = module.enclosing_function(reads[0][0])
    if statement is None or function is None or isinstance(statement, HEADS) or _is_elif(module, statement):
        return None
    for loop in loops_around(module, statement, function):
        if not all(renews(module, loop, read, base) and not looks_beyond(module, loop, read, base) for read, base in reads):
            return None if any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for n in ast.walk(loop)) else loop
    return statement


def site(module: Module, statement: ast.stmt, leaves: set[str], later: list[ast.expr]) -> Site | None:
    """The place behind the harvest `statement` and behind the `later` reads of the same leaves; None where there is none for
    sure."""
    function = module.enclosing_function(statement)
    if function is None or _looked_at_on_the_way_out(module, statement, function, leaves):
        return None
    block = block_of(module, statement)
    following = block[block.index(statement) :]
    wanted = [next((s for s in following if _inside(s, node)), None) for node in later]
    if None in wanted:
        return None
    anchor = max([statement, *(s for s in wanted if s)], key=lambda s: s.lineno)
    between = following[: following.index(anchor) + 1]
    hoisted = isinstance(statement, Loop)
    if any(_leaves_early(s) for s in between if not isinstance(s, ast.Return) and not (hoisted and s is statement)):
        return None
    alone = _alone(module, statement) and _alone(module, anchor)
    return Site(statement, anchor, function) if alone else None


def between(module: Module, place: Site) -> list[ast.stmt]:
    """What runs from the harvest up to the release."""
    block = block_of(module, place.statement)
    return block[block.index(place.statement) : block.index(place.anchor) + 1]


def _is_elif(module: Module, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and module.lines[statement.lineno - 1].lstrip().startswith("elif")


def _looked_at_on_the_way_out(module: Module, statement: ast.stmt, function: Function, leaves: set[str]) -> bool:
    """Whether a `finally` or the end of a `with` around the harvest gets the leaves, or reads some `.grad`."""
    child: ast.AST = statement
    for node in module.ancestors(statement):
        if node is function:
            return False
        ends: list[ast.AST] = []
        if isinstance(node, ast.Try) and child not in node.finalbody:
            ends = [*node.finalbody]
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            ends = [item.context_expr for item in node.items]
        if any(holders(end) & leaves or _reads_grad(end) for end in ends):
            return True
        child = node
    return False


def _reads_grad(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


def exclusive(module: Module, a: ast.AST, b: ast.AST) -> bool:
    """Whether `a` and `b` stand in two branches of which only one runs."""
    around = {id(n): inner for inner, n in _chain(module, a)}
    for inner, node in _chain(module, b):
        if id(node) in around:
            other = around[id(node)]
            if isinstance(node, ast.If):
                return (other in node.body) != (inner in node.body) and node.test not in {other, inner}
            return isinstance(node, ast.Match) and other is not inner
    return False


def _chain(module: Module, node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Each ancestor with the child that leads to `node`."""
    steps = [node, *module.ancestors(node)]
    return list(zip(steps, steps[1:], strict=False))


def _inside(statement: ast.stmt, node: ast.AST) -> bool:
    return statement.lineno <= getattr(node, "lineno", 0) <= (statement.end_lineno or statement.lineno)


def _leaves_early(statement: ast.stmt) -> bool:
    return any(isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(statement))


def _alone(module: Module, statement: ast.stmt) -> bool:
    """Whether the statement has its lines for itself."""
    span = module.span(statement)
    before = module.lines[span.start_line - 1][: span.start_column]
    behind = module.lines[span.end_line - 1][span.end_column :].strip()
    return not before.strip() and (not behind or behind.startswith("#"))

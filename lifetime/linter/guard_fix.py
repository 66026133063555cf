"""A release that runs under a capture, put under the file's own guard."""

from __future__ import annotations

import ast

from lifetime.linter.capture import capture
from lifetime.linter.flow.machine import Release
from lifetime.linter.model import Edit, Fix, Safety, Span
from lifetime.linter.module import Module
from lifetime.linter.release_fix import guard_of, guarded
from lifetime.linter.release_plan import INDENT

TITLE = "release only outside CUDA-graph capture"


def guard_fix(module: Module, release: Release) -> Fix | None:
    """Put the release, or the loop that does nothing else, under `if not CAPTURING`; None where that needs more than a new
    line."""
    knows = capture(module)
    statement = release_statement(module, release)
    asked = guard_of(knows, module, release.node) if knows else None
    if statement is None or asked is None or release.inverted:
        return None
    guard, imports = asked
    span = module.span(statement)
    lines = module.lines[span.start_line - 1 : span.end_line]
    indent = lines[0][: span.start_column]
    if indent.strip() or any(isinstance(n, ast.JoinedStr) for n in ast.walk(statement)):
        return None
    head = ([imports, ""] if imports else []) + guarded(module, guard, len(indent))
    text = "\n".join([*(indent + h if h else h for h in head), *(INDENT + line if line.strip() else line for line in lines)])
    whole = Span(span.start_line, 0, span.end_line, len(lines[-1]))
    return Fix(TITLE, Safety.SAFE, (Edit(whole, text),))


def release_statement(module: Module, release: Release) -> ast.stmt | None:
    """The outermost statement that does nothing but this release; None where it does something else too (a swap, a
    comprehension)."""
    statement = next((n for n in [release.node, *module.ancestors(release.node)] if isinstance(n, ast.stmt)), None)
    if statement is None or not _only_releases(statement):
        return None
    while True:
        around = module.parents.get(statement)
        if not isinstance(around, (ast.For, ast.If)) or around.orelse or around.body != [statement] or not _quiet(around):
            return statement
        statement = around


def _only_releases(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=targets, value=ast.Constant(value=None)):
            return all(isinstance(t, ast.Attribute) and t.attr == "grad" for t in targets)
        case ast.Delete(targets=targets):
            return all(isinstance(t, ast.Attribute) and t.attr == "grad" for t in targets)
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr" | "delattr"))):
            return True
    return False


def _quiet(node: ast.For | ast.If) -> bool:
    """Its head has no effect that must happen under a capture too."""
    head = node.iter if isinstance(node, ast.For) else node.test
    return not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in ast.walk(head))

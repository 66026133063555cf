"""Find the function that is one step in a module's tree, and wrap it where it is bound."""

from __future__ import annotations

import ast

from lifetime.tracer.probe import MODULE

Body = list[ast.stmt]


def mark_step(tree: ast.Module, qualname: str) -> int:
    """How many bindings of `qualname` in `tree` are now followed by `NAME = boundary(NAME)`; no line number changes.

    `qualname` is `name` or `Class.method`. Bindings at module level win; otherwise any nested function or method of
    that name is taken (`main.step` and `step` both name a function defined inside `main`).
    """
    *outer, name = [part for part in qualname.split(".") if part != "<locals>"]
    body: Body | None = tree.body
    for part in outer:
        body = _body_of(body or [], part)
    found = _mark(body, name) if body else 0
    if found or outer:
        return found
    return sum(_mark(node.body, name) for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _body_of(body: Body, name: str) -> Body | None:
    for statement in _statements(body):
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == name:
            return statement.body
    return None


def _mark(body: Body, name: str) -> int:
    found = 0
    for block in _blocks(body):
        for index in reversed(range(len(block))):
            if name in _bound_names(block[index]):
                block.insert(index + 1, _wrap(name, block[index]))
                found += 1
    return found


def _blocks(body: Body) -> list[Body]:
    """`body` and the blocks of its compound statements that bind names in the same scope (`if`, `try`, `with`, loops)."""
    blocks = [body]
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(statement, field, None)
            blocks += _blocks(inner) if inner else []
        for handler in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
            blocks += _blocks(handler.body)
    return blocks


def _statements(body: Body) -> list[ast.stmt]:
    return [statement for block in _blocks(body) for statement in block]


def _bound_names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return {statement.name}
        case ast.Assign():
            return {target.id for target in statement.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return {name}
        case ast.Import() | ast.ImportFrom() if getattr(statement, "module", None) != "__future__":
            return {alias.asname or alias.name for alias in statement.names}
    return set()


def _wrap(name: str, after: ast.stmt) -> ast.stmt:
    """`NAME = __import__(probe).boundary(NAME)`: an expression, so that no name is added to the module."""
    line = f"x = __import__({MODULE!r}, None, None, ('boundary',)).boundary(x)"
    (statement,) = ast.parse(line).body
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == "x":
            node.id = name
        if isinstance(node, (ast.stmt, ast.expr)):
            node.lineno = node.end_lineno = after.lineno
            node.col_offset = node.end_col_offset = after.col_offset
    return statement

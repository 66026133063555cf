"""What a nested function refers to outside of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.nodes import below

AnyFunction = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef
Scoped = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)


def parameters(function: AnyFunction) -> list[str]:
    a = function.args
    return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *(v for v in (a.vararg, a.kwarg) if v))]


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Every node of a function's body that is not inside a function nested in it; the nested function itself is given."""
    body = function.body if isinstance(function, ast.Lambda) else getattr(function, "body", [])
    stack: list[ast.AST] = [body] if isinstance(body, ast.AST) else list(body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Scoped):
            stack.extend(below(node))
        else:
            stack.extend([*node.args.defaults, *(d for d in node.args.kw_defaults if d)])


def bound_names(function: AnyFunction) -> set[str]:
    """Names that live in the function: its parameters and whatever it assigns, unless declared global or nonlocal."""
    names = set(parameters(function))
    elsewhere: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            names.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
    return names - elsewhere


def free_names(function: AnyFunction) -> set[str]:
    """Names that the function, or one nested in it, reads from outside."""
    used: set[str] = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, Scoped):
            used |= free_names(node)
    return used - bound_names(function)

"""Where parameters' `.grad` fields are set to None after a backward: by a loop over them or by `zero_grad`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from lifetime.linter.blocks import afterwards
from lifetime.linter.imports import dotted
from lifetime.linter.module import Function, Module

SOON = 200
"""Statements."""
ANY = "*"
"""Stands for parameters whose owner the source does not name."""


def released(module: Module, scope: Function | ast.Module, statement: ast.stmt) -> set[str]:
    """Owners whose parameters lose their `.grad` soon after `statement`, whichever way the function goes on."""
    return {owner for later in islice(afterwards(module, statement), SOON) if (owner := _owner(later, scope))}


def released_elsewhere(module: Module, scope: Function | ast.Module) -> bool:
    """Whether the class has a `zero_grad` of its own that clears parameters: when it runs, this file does not say."""
    owner = module.enclosing_class(scope)
    others = [m for m in owner.body if "grad" in getattr(m, "name", "") and m is not scope] if owner else []
    return any(isinstance(n, ast.For) and _owner(n, method) for method in others for n in ast.walk(method))


def covers(owners: set[str], used: set[str]) -> bool:
    """Whether a release of `owners` may be one of what `used` was computed with. In doubt it is."""
    if ANY in owners or not used:
        return bool(owners)
    return any(f"{u}.".startswith(f"{o}.") or f"{o}.".startswith(f"{u}.") for o in owners for u in used)


def _owner(statement: ast.stmt, scope: ast.AST) -> str | None:
    match statement:
        case ast.For(target=ast.Name(id=name) | ast.Tuple(elts=[_, ast.Name(id=name)]), iter=iterable, body=body):
            return _owner_of(iterable, scope) if any(_clears(s, name) for s in body) else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="zero_grad")) as call):
            kept = any(getattr(v, "value", None) is False for v in [*call.args, *(k.value for k in call.keywords)])
            return None if kept else _zeroed(dotted(owner))
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return next((o for s in body if (o := _owner(s, scope))), None)
    return None


def _zeroed(owner: str | None) -> str:
    """Whose parameters `owner.zero_grad()` reaches: a module's own, an optimizer's whatever it was given."""
    return ANY if owner is None or "opt" in owner else owner


def _clears(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=who), attr="grad")], value=ast.Constant(value=None)):
            return who == name
        case ast.Delete(targets=[ast.Attribute(value=ast.Name(id=who), attr="grad")]):
            return who == name
        case ast.If(test=ast.Compare(left=ast.Attribute(attr="grad"), ops=[ast.IsNot()]), body=body):
            return any(_clears(s, name) for s in body)
    return False


def _owner_of(iterable: ast.expr, scope: ast.AST) -> str | None:
    """Whose parameters an expression lists; None for a slice, which leaves some out."""
    match iterable:
        case ast.Call(func=ast.Attribute(value=owner, attr="parameters" | "named_parameters")):
            return dotted(owner) or ANY
        case ast.Call(func=ast.Name(id="list" | "tuple" | "iter"), args=[inner]):
            return _owner_of(inner, scope)
        case ast.Subscript():
            return None
        case ast.Name(id=name):
            made = list(_assigned(name, scope))
            return _owner_of(made[0], scope) if len(made) == 1 and not isinstance(made[0], ast.Name) else ANY
    return ANY


def _assigned(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield node.value

"""Who may look at the leaves behind the release: a function that runs again, a function made here that is called later, a call
that is handed the leaves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.blocks import statement_of
from lifetime.linter.flow.flow import Leak
from lifetime.linter.flow.names import last_name
from lifetime.linter.module import Function, Module
from lifetime.linter.release_order import COMPREHENSIONS, aliases, hands_on, holders, loops_around
from lifetime.linter.release_plan import MAPPERS, consumed
from lifetime.linter.release_site import Site

CERTAIN = "!"
"""In front of a reason that is no doubt: then there is no fix at all."""


def runs_again(module: Module, leak: Leak, home: Function) -> str:
    """Why the function of the harvest may be run more than once over the same leaves; empty where it cannot: it runs the
    backward itself, or the one call of it stands where the backward is run."""
    runs = leak.walk.machine.events.runs
    root = leak.walk.root.function
    if any(home in module.ancestors(node) for node in runs) or (home is root and runs):
        return ""
    nested = module.enclosing_function(home) is not None
    calls = list(_mentions(module, home))
    many = len({module.enclosing_function(c) for c in calls}) < len(calls)
    within = [c for c in calls if isinstance(module.parents.get(c), ast.Call) and not _repeated(module, c)]
    certain = len(calls) == 1 and within == calls and not home.decorator_list
    if certain and (nested or home.name.startswith("_")):
        return ""
    if nested or many:
        return f"{CERTAIN}`{home.name}` may be called again"
    return f"`{home.name}` runs no backward itself: whoever calls it twice finds no .grad the second time"


def _mentions(module: Module, home: Function) -> Iterator[ast.expr]:
    for node in ast.walk(module.tree):
        if (isinstance(node, ast.Name) and node.id == home.name) or (isinstance(node, ast.Attribute) and node.attr == home.name):
            yield node


def _repeated(module: Module, call: ast.expr) -> bool:
    """Whether a mention is no plain call that runs once whenever its function does."""
    around, function = module.parents.get(call), module.enclosing_function(call)
    if not isinstance(around, ast.Call) or around.func is not call or function is None:
        return True
    statement = statement_of(module, call)
    for node in module.ancestors(call):
        if node is statement:
            break
        if isinstance(node, (ast.Lambda, *COMPREHENSIONS)):
            return True
    return bool(loops_around(module, call, function))


def looks_later(module: Module, leak: Leak, place: Site, leaves: set[str]) -> str:
    """Why something made in this function may read the leaves behind the release: a lambda, a generator, an inner function."""
    own, known = set(ast.walk(place.statement)), aliases(place.function, leaves)
    reads, last = leak.walk.machine.events.reads, place.anchor.end_lineno or place.anchor.lineno
    for node in ast.walk(place.function):
        if node in own or not (_reads_grad(node) or (isinstance(node, (ast.Name, ast.Attribute)) and holders(node) & known)):
            continue
        if node in reads and not any(a.meets(b) for a in reads[node] for b in leak.keys):
            continue
        maker = deferring(module, node, place.function)
        if isinstance(maker, (ast.FunctionDef, ast.AsyncFunctionDef)):
            used = [c for c in _mentions(module, maker) if place.function in module.ancestors(c)]
            in_class = isinstance(module.parents.get(maker), ast.ClassDef)
            if not in_class and all(getattr(module.parents.get(c), "func", None) is c and c.lineno <= last for c in used):
                continue
        if maker is not None:
            return f"what is made in line {getattr(maker, 'lineno', 0)} may read .grad of the same leaves later"
    return ""


def _reads_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)


def deferring(module: Module, node: ast.AST, function: Function) -> ast.AST | None:
    """The lambda, inner function or unconsumed generator in `function` that puts `node` off."""
    for outer in module.ancestors(node):
        if outer is function:
            return None
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return outer
        if isinstance(outer, ast.Call) and last_name(outer.func) == "partial":
            return outer
        if isinstance(outer, ast.GeneratorExp) and not consumed(module, outer):
            return outer
        if isinstance(outer, ast.Lambda):
            call = module.parents.get(outer)
            at_once = isinstance(call, ast.Call) and (last_name(call.func) in MAPPERS or consumed(module, call))
            if not at_once:
                return outer
    return None


def handed_on(module: Module, statement: ast.stmt, function: Function, leaves: set[str]) -> list[ast.expr]:
    """Calls behind `statement` that are given the leaves: what they do with `.grad` is not known."""
    last = statement.end_lineno or statement.lineno
    known = aliases(function, leaves)
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call) and n.lineno > last)
    return [call for call in calls if hands_on(call, known)]

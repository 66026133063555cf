"""Why the rules about graphs and hooks are silent on a line, where the line itself shows it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from lifetime.linter.accumulation import GROWING
from lifetime.linter.blocks import Loop, Scope
from lifetime.linter.module import Module

TRACED = "`lifetime trace` sees what is really kept"


def reasons(module: Module, line: int, codes: Collection[str]) -> list[str]:
    """Sentences about what stands on `line`, by those of the rules `codes` that look for its like; empty where none does."""
    nodes = [n for n in ast.walk(module.tree) if getattr(n, "lineno", 0) == line]
    said = [sentence for node in nodes for sentence in _reasons(module, node)]
    return [f"{code}: {sentence}" for code, sentence in dict.fromkeys(said) if code in codes]


def _reasons(module: Module, node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.AugAssign(op=ast.Add()):
            yield "LT009", _about_growth(module, node)
        case ast.Call(func=ast.Attribute(attr=name)) if name in GROWING:
            yield "LT009", _about_growth(module, node)
        case ast.Call(func=ast.Attribute(attr="register_hook" | "register_prehook" | "register_post_accumulate_grad_hook")):
            yield "LT007", "the hook is not known to hold its tensor or something computed from it"
        case ast.Call(func=ast.Attribute(attr=name)) if name.startswith("register_") and name.endswith("hook"):
            yield "LT007", f"only hooks of tensors and nodes are looked at, not what a module's hook keeps; {TRACED}"
        case ast.Call(func=ast.Attribute(attr="backward" | "grad"), keywords=keywords):
            yield from _about_flags({k.arg: k.value for k in keywords})


def _about_growth(module: Module, node: ast.AST) -> str:
    for outer in module.ancestors(node):
        if isinstance(outer, Loop):
            return "what is added is not known to carry a graph, or what it is added to does not outlive the turn: in doubt silent"
        if isinstance(outer, Scope):
            break
    return f"not inside a loop of this function, and who calls it in a loop is not followed; {TRACED}"


def _about_flags(flags: dict[str | None, ast.expr]) -> Iterator[tuple[str, str]]:
    for code, name in (("LT008", "create_graph"), ("LT010", "retain_graph")):
        value = flags.get(name)
        if value is None:
            yield code, f"{name} is not given"
        elif not isinstance(value, ast.Constant):
            yield code, f"{name} is decided at run time"
        elif value.value is not True:
            yield code, f"{name} is {value.value!r}"
        else:
            yield code, f"{name}=True, but this is not known to leave anything behind: in doubt silent"

"""Which names of a function are modules, and which methods its class has, by what the source does with them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from lifetime.linter.imports import Imports, dotted
from lifetime.linter.torch_names import MODULE_METHODS


def methods(owner: ast.ClassDef | None) -> set[str]:
    body = owner.body if owner else []
    return {s.name for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}


def modules(nodes: Iterable[ast.AST], imports: Imports) -> set[str]:
    """Dotted names that only a module can stand behind: `x.parameters()`, `x.eval()`, `x = nn.Linear(...)`, `x: nn.Module`."""
    return {name for root in nodes for node in ast.walk(root) if (name := _module(node, imports))}


def _module(node: ast.AST, imports: Imports) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=attr), args=args):
            switched = attr in {"train", "eval"} and (not args or isinstance(args[0], ast.Constant)) and len(args) < 2
            return dotted(base) if attr in MODULE_METHODS or switched else None
        case ast.Assign(targets=[target], value=ast.Call(func=func)):
            return dotted(target) if is_module_class(func, imports) else None
        case ast.arg(annotation=ast.expr() as annotation):
            return node.arg if is_module_class(annotation, imports) else None
    return None


def is_module_class(node: ast.expr, imports: Imports) -> bool:
    """`nn.Linear` and the like, or a class of this file that is a module."""
    name = imports.resolve(node) or ""
    if name.startswith("torch.nn.") and not name.startswith(("torch.nn.functional", "torch.nn.utils", "torch.nn.init")):
        return name.rpartition(".")[2][:1].isupper() and not name.endswith(("Parameter", "Buffer"))
    defined = imports.defined.get(name)
    if not isinstance(defined, ast.ClassDef):
        return False
    return any((imports.resolve(base) or "").startswith("torch.nn.") for base in defined.bases)

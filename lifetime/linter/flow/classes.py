"""Classes and functions by name: methods, their bases, helpers on disk."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.flow.imports import locate_module, resolve
from lifetime.linter.flow.index import index
from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.values import Callee, ClassRef, Value
from lifetime.linter.module import Function, Module

RECORDS = {"dataclass", "NamedTuple", "define", "frozen", "attrs"}
"""Decorators and bases that write a class's `__init__`."""


def named(module: Module, name: str) -> Callee | ClassRef | None:
    """The function or class that `name` stands for at the top of `module`, on disk if it is imported."""
    names = index(module)
    if name in names.functions:
        return Callee(names.functions[name], module)
    if name in names.classes:
        return ClassRef(names.classes[name], module)
    if name in names.imports:
        return imported(module, *names.imports[name])
    return None


def imported(module: Module, source: str, name: str) -> Callee | ClassRef | None:
    memo = module.memo.setdefault("imports", {})
    assert isinstance(memo, dict)
    if (source, name) not in memo:
        memo[source, name] = resolve(module, source, name)
    found = memo[source, name]
    if found is None:
        return None
    other, node = found
    return ClassRef(node, other) if isinstance(node, ast.ClassDef) else Callee(node, other)


def member(module: Module, owner: str, name: str) -> Callee | ClassRef | None:
    """`owner.name` where `owner` is an imported module."""
    source = index(module).imports.get(owner)
    if source is None:
        return None
    return imported(module, locate_module(*source), name)


def bases(cls: ClassRef, depth: int = 4) -> Iterator[ClassRef]:
    """`cls` and those of its bases that can be read, nearest first."""
    yield cls
    if depth:
        for base in cls.node.bases:
            found = named(cls.module, last_name(base)) if isinstance(base, ast.Name) else None
            if isinstance(found, ClassRef) and found.node is not cls.node:
                yield from bases(found, depth - 1)


def method(cls: ClassRef, name: str, skip_own: bool = False) -> Callee | None:
    for owner in bases(cls):
        if skip_own and owner.node is cls.node:
            continue
        for node in owner.node.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                return Callee(node, owner.module, owner=owner)
    return None


def binding(function: Function | ast.Lambda, receiver: Value, on_class: bool) -> tuple[Value, ...]:
    """What is bound to the first parameter of a method that is reached through `receiver`."""
    decorators = {last_name(d) for d in getattr(function, "decorator_list", [])}
    if "staticmethod" in decorators or (on_class and "classmethod" not in decorators):
        return ()
    return (receiver,)


def record(made: Value) -> tuple[str, ...]:
    """The fields of a class that is called, in order, where its `__init__` is written for it; empty for any other."""
    if made.cls is None or made.instance:
        return ()
    node = made.cls.node
    written = any(_last(d) in RECORDS for d in [*node.decorator_list, *node.bases])
    return (
        tuple(n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)) if written else ()
    )


def _last(node: ast.expr) -> str:
    return last_name(node.func if isinstance(node, ast.Call) else node)


def is_autograd_function(cls: ClassRef) -> bool:
    """Whether the class derives from `torch.autograd.Function`, by the name of its bases."""
    return any(last_name(base).endswith("Function") for owner in bases(cls) for base in owner.node.bases)

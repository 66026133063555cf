"""Registrations of tensor and node hooks: what the hook keeps alive, and whether its handle is ever used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.linter.closures import AnyFunction, Scoped, bound_names, free_names, parameters
from lifetime.linter.execute import Execution
from lifetime.linter.imports import dotted
from lifetime.linter.module import Function, Module
from lifetime.linter.values import Value

REGISTERING = {"register_hook", "register_post_accumulate_grad_hook", "register_prehook"}


@dataclass(frozen=True)
class Held:
    """A value that lives as long as the hook, by the name that the source gives it."""

    name: str
    value: Value


def registrations(module: Module) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """Calls that register a hook, in the order of the file."""
    found = sorted(_registrations(module), key=lambda pair: (pair[0].lineno, pair[0].col_offset))
    yield from found


def _registrations(module: Module) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REGISTERING:
            yield node, node.func


class Hooks:
    """The hooks that one scope registers."""

    def __init__(self, module: Module, scope: Function | ast.Module, run: Execution) -> None:
        self.module = module
        self.run = run
        self.owner = module.enclosing_class(scope)
        around = [] if isinstance(scope, ast.Module) else [scope, *module.ancestors(scope)]
        self.cells = {name for f in around if isinstance(f, Scoped) for name in bound_names(f)}

    def held(self, hook: ast.expr) -> Iterator[Held]:
        """What the callable `hook` keeps alive: cells (as the scope leaves them), default arguments, arguments of `partial`."""
        if method := self.method(hook):
            yield from self.of_attributes(method)
        results = self.run.results.get(hook)
        made_by = self.run.ancestry.origin(results[-1]).node if results else None
        if isinstance(made_by, Scoped):
            yield from self.of_function(made_by)
        elif isinstance(made_by, ast.Call):
            yield from self.of_call(made_by)

    def of_function(self, function: AnyFunction) -> Iterator[Held]:
        for default in [*function.args.defaults, *(d for d in function.args.kw_defaults if d)]:
            yield from self.at_registration(default)
        for name in sorted(free_names(function) & self.cells):
            for env in self.run.exits:
                if name in env:
                    yield Held(name, env[name])
        if "self" in free_names(function):
            yield from self.of_attributes(function)

    def of_attributes(self, function: AnyFunction) -> Iterator[Held]:
        """Attributes of `self` that the hook reads: it holds the object, and so what the scope has stored there."""
        read = {dotted(n) for n in ast.walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
        for name in sorted(n for n in read if n and n.startswith("self.")):
            for env in self.run.exits:
                if name in env:
                    yield Held(name, env[name])

    def method(self, hook: ast.expr) -> Function | None:
        """The method of the scope's class that `self.NAME` stands for."""
        owner = self.owner if (dotted(hook) or "").startswith("self.") else None
        methods = [m for m in owner.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))] if owner else []
        return next((m for m in methods if f"self.{m.name}" == dotted(hook)), None)

    def of_call(self, call: ast.Call) -> Iterator[Held]:
        if self.run.imports.resolve(call.func) in {"functools.partial", "partial"}:
            for argument in [*call.args, *(k.value for k in call.keywords)]:
                yield from self.at_registration(argument)
            if call.args:
                yield from self.held(call.args[0])
        elif factory := self.factory(call):
            names = parameters(factory)
            if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
                names = names[1:]
            given = {**dict(zip(names, call.args, strict=False)), **{k.arg: k.value for k in call.keywords if k.arg}}
            kept = _kept_by_result(factory)
            for name, argument in given.items():
                if name in kept and not isinstance(argument, ast.Starred):
                    yield from self.at_registration(argument)

    def at_registration(self, argument: ast.expr) -> Iterator[Held]:
        for value in self.run.results.get(argument, ()):
            yield Held(self.module.text(argument), value)

    def factory(self, call: ast.Call) -> Function | None:
        """The function of this file that a call goes to, where its name says so."""
        name = (dotted(call.func) or "").removeprefix("self.").removeprefix("cls.")
        found = [f for f in self.module.functions if f.name == name] if name else []
        return found[0] if len(found) == 1 else None

    def is_let_go(self, call: ast.Call) -> bool:
        """Whether the handle that `call` returns may be used to remove the hook."""
        parent = self.module.parents.get(call)
        if isinstance(parent, ast.Expr):
            return False
        if isinstance(parent, (ast.Return, ast.withitem, ast.Yield)):
            return True
        names = {dotted(t) for t in parent.targets} if isinstance(parent, ast.Assign) else set()
        return any(_lets_go(node, names) for node in self.module.nodes)


def _lets_go(node: ast.AST, names: set[str | None]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="remove"), args=[], keywords=[]):
            return True
        case ast.Return(value=ast.expr() as value):
            return dotted(value) in names - {None}
    return False


def _kept_by_result(factory: Function) -> set[str]:
    """Parameters of `factory` that the function it returns refers to."""
    nested = {n.name: n for n in ast.walk(factory) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n is not factory}
    kept: set[str] = set()
    for node in ast.walk(factory):
        if isinstance(node, ast.Return):
            made = nested.get(node.value.id) if isinstance(node.value, ast.Name) else node.value
            if isinstance(made, Scoped):
                kept |= free_names(made)
    return kept & set(parameters(factory))

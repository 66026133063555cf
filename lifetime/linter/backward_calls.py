"""Calls that run a backward pass: whose they are, with which flags, and a release of what they leave."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from lifetime.linter.blocks import LEAVES, Loop, Scope, may_leave, rest_of
from lifetime.linter.closures import bound_names
from lifetime.linter.execute import Execution
from lifetime.linter.imports import dotted
from lifetime.linter.model import Edit, Fix, Safety, Span
from lifetime.linter.module import Function, Module
from lifetime.linter.statements import statements
from lifetime.linter.study import Study
from lifetime.linter.values import How, Kind, Value

TENSOR_ARGUMENTS = {"gradient", "retain_graph", "create_graph", "inputs"}


def flag(call: ast.Call, name: str) -> object:
    """The literal value of a keyword; None where it is absent or decided at run time."""
    given = [k.value for k in call.keywords if k.arg == name]
    return given[0].value if given and isinstance(given[0], ast.Constant) else None


class Receivers:
    """Tells torch's `backward` from methods of the same name."""

    def __init__(self, module: Module, facts: Study) -> None:
        self.module = module
        self.facts = facts

    def calls(self, names: tuple[str, ...] = ("backward",)) -> Iterator[ast.Call]:
        for node in self.module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                if name in names:
                    yield node

    def run(self, scope: Function | ast.Module) -> Execution | None:
        return self.facts.walk(scope)

    def is_function(self, call: ast.Call) -> bool:
        return self.facts.imports.resolve(call.func) in {"torch.autograd.backward", "torch.autograd.grad"}

    def is_torch(self, call: ast.Call, scope: Function | ast.Module) -> bool:
        """Whether `call` is a tensor's `backward` or a function of `torch.autograd`. In doubt it is not."""
        if self.is_function(call):
            return True
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr != "backward"
            or dotted(call.func.value) in {"self", "cls", "super"}
        ):
            return False
        if self.class_of(call.func.value, scope) or {k.arg for k in call.keywords} - TENSOR_ARGUMENTS:
            return False
        kinds = {value.kind for value in self.values(call.func.value, scope)}
        return Kind.TENSOR in kinds if call.args else not kinds & {Kind.MODULE, Kind.PLAIN, Kind.CONTAINER}

    def values(self, node: ast.expr, scope: Function | ast.Module) -> list[Value]:
        run = self.run(scope)
        return run.results.get(node, []) if run else []

    def class_of(self, receiver: ast.expr, scope: ast.AST) -> ast.ClassDef | None:
        """The class of this file that `receiver` is annotated with or made from, if it has a `backward` of its own."""
        name = dotted(receiver)
        for node in ast.walk(self.module.enclosing_class(scope) or scope) if self.own else ():
            made: ast.expr | None = None
            if isinstance(node, ast.arg) and node.arg == name:
                made = node.annotation
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name in map(dotted, node.targets):
                made = node.value.func
            if made and (found := self.own.get(dotted(made) or "")):
                return found
        return None

    @cached_property
    def own(self) -> dict[str, ast.ClassDef]:
        """Classes of this file that define a `backward`, by name."""
        classes = [node for node in self.facts.imports.defined.values() if isinstance(node, ast.ClassDef)]
        return {node.name: node for node in classes if any(getattr(s, "name", "") == "backward" for s in node.body)}

    def modules_behind(self, call: ast.Call, scope: Function | ast.Module) -> set[str]:
        """Dotted names of the callables with which the back-propagated value was computed."""
        run = self.run(scope)
        if run is None:
            return set()
        root = call.args[0] if self.is_function(call) and call.args else call.func
        values = run.results.get(root.value if isinstance(root, ast.Attribute) and root is call.func else root, [])
        behind = run.ancestry.behind(*values)
        called = [run.ancestry.origins[own].node for own in behind if run.ancestry.origins[own].how is How.FORWARD]
        return {name for node in called if isinstance(node, ast.Call) and (name := dotted(node.func))}

    def known_modules(self, scope: Function | ast.Module) -> set[str]:
        run = self.run(scope)
        return run.modules if run else set()


def second_order_fix(module: Module, scope: Function | ast.Module, statement: ast.stmt, owners: set[str]) -> Fix | None:
    """Gives up the `.grad` fields at the end of the loop body or function in which `statement` stands."""
    outer: ast.stmt = statement
    while not isinstance(parent := module.parents.get(outer), (*Loop, *Scope)):
        if not isinstance(parent, ast.stmt):
            return None
        outer = parent
    rest = rest_of(module, outer)
    last = rest[-1] if rest else outer
    before = isinstance(last, LEAVES)
    inner = rest[:-1] if before else rest
    leaves = any(may_leave(module, s) for s in inner)
    if leaves or (before and _reads_grad([last])) or (isinstance(parent, Loop) and _reads_grad(rest_of(module, parent))):
        return None
    release = _release(module, scope, owners)
    if release is None:
        return None
    line = last.lineno if before else (last.end_lineno or last.lineno) + 1
    indent = module.lines[outer.lineno - 1][: outer.col_offset]
    if module.lines[outer.lineno - 1][: outer.col_offset].strip():
        return None
    text = "".join(f"{indent}{part}\n" for part in release)
    if line > len(module.lines):
        return None
    reason = "code that runs later may still read these .grad fields"
    return Fix("set the .grad fields to None afterwards", Safety.UNSAFE, (Edit(Span(line, 0, line, 0), text),), reason)


def _reads_grad(statements: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in {"grad", "step"} for s in statements for n in ast.walk(s))


def _release(module: Module, scope: Function | ast.Module, owners: set[str]) -> list[str] | None:
    for node, _ in statements(scope):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="zero_grad"), args=[], keywords=[]) as call):
                return [module.text(call)]
    if not owners:
        return None
    taken = set() if isinstance(scope, ast.Module) else bound_names(scope)
    name = next(n for n in ("p", "param", "parameter", "_parameter") if n not in taken)
    return [line for owner in sorted(owners) for line in (f"for {name} in {owner}.parameters():", f"    {name}.grad = None")]

"""The values of one function of a file, worked out once and shared by all rules."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial

from lifetime.linter.execute import Execution
from lifetime.linter.imports import Imports, dotted
from lifetime.linter.module import Function, Module
from lifetime.linter.module_names import ModuleNames, is_module_class, methods
from lifetime.linter.state import Did
from lifetime.linter.statements import all_statements
from lifetime.linter.values import Kind

LONGEST = 2000
"""Lines. A longer function is generated, and nothing is claimed about it."""
REMEMBERED = 32
"""Walks. A file of ten thousand functions must not keep them all."""


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Known = Mapping[str, Kind | list[Kind]]


class Study:
    """One file under study: its imports, its classes, and the walks done so far. It does not hold its module, which holds it."""

    def __init__(self, module: Module) -> None:
        self.imports = Imports(module)
        self.walks: dict[tuple[ast.AST, str], Execution | None] = {}
        self.spending: set[ast.stmt] = set()
        self.names = ModuleNames(module, self.imports)
        self.owners = {node: owner for node, owner in all_statements(module) if isinstance(node, FUNCTIONS)}
        """The innermost class around each function."""

    def walk(self, scope: Function | ast.Module, known: Known | None = None) -> Execution | None:
        """`scope` walked from its first statement to its last; None where it is too long.

        `known` types its parameters; a list stands for a tuple of so many values.
        """
        key = (scope, repr(known))
        if key not in self.walks:
            run = self._walk(scope, known or {})
            if len(self.walks) >= REMEMBERED:
                del self.walks[next(iter(self.walks))]
            self.walks[key] = run
        return self.walks[key]

    def _walk(self, scope: Function | ast.Module, known: Known) -> Execution | None:
        body = scope.body
        if not body or (body[-1].end_lineno or 0) - body[0].lineno > LONGEST:
            return None
        owner = None if isinstance(scope, ast.Module) else self.owners.get(scope)
        run = Execution(self.imports, self.modules_in(scope, owner), methods(owner), partial(self.is_spent, owner))
        if not isinstance(scope, ast.Module):
            self.enter(run, scope, owner, known)
        run.block(body)
        run.exits.append(run.env)
        return run

    def enter(self, run: Execution, function: Function, owner: ast.ClassDef | None, known: Known) -> None:
        """Binds the parameters and applies the decorators."""
        for decorator in function.decorator_list:
            run.grad = run.mode_of(decorator, run.grad)
        in_module = owner is not None and any((self.imports.resolve(b) or "").startswith("torch.nn.") for b in owner.bases)
        arguments = function.args
        for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            kind = known.get(arg.arg) or annotated(arg.annotation, self.imports)
            if isinstance(kind, list):
                run.bind(arg.arg, run.tuple([run.given(arg, k) for k in kind]))
                continue
            is_module = arg.arg in run.modules or (arg.arg == "self" and in_module)
            run.bind(arg.arg, run.given(arg, Kind.MODULE if is_module else kind))
        if rest := arguments.vararg:
            kind = known.get(rest.arg) or annotated(rest.annotation, self.imports)
            run.bind(rest.arg, run.container(rest, [run.given(rest, kind if isinstance(kind, Kind) else Kind.OPAQUE)]))
        if arguments.kwarg:
            run.bind(arguments.kwarg.arg, run.given(arguments.kwarg))

    def kinds(self, function: Function) -> dict[str, Kind]:
        """What the annotations of a function's parameters promise."""
        a = function.args
        return {p.arg: annotated(p.annotation, self.imports) for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}

    def is_spent(self, owner: ast.ClassDef | None, callee: ast.expr) -> bool:
        """Whether a function of this file, or a method of the class, returns the very loss that it has back-propagated."""
        name = dotted(callee) or ""
        method = name.removeprefix("self.")
        found: ast.stmt | None = self.imports.defined.get(name)
        if name.startswith("self.") and owner:
            found = next((s for s in owner.body if getattr(s, "name", None) == method), None)
        if not isinstance(found, FUNCTIONS) or found in self.spending:
            return False
        self.spending.add(found)
        run = self.walk(found)
        self.spending.discard(found)
        return run is not None and returns_spent(run)

    def modules_in(self, scope: Function | ast.Module, owner: ast.ClassDef | None) -> set[str]:
        """Names of modules in `scope`; its class says the same of its attributes."""
        attributes = {name for name in self.names.within(owner) if name.startswith("self.")} if owner else set()
        return self.names.within(scope) | attributes


def annotated(annotation: ast.expr | None, imports: Imports) -> Kind:
    """The kind that an annotation promises: a tensor (also an optional one), a plain value, or nothing."""
    if annotation is None:
        return Kind.OPAQUE
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return Kind.OPAQUE
    if isinstance(annotation, ast.BinOp):
        sides = [annotated(s, imports) for s in (annotation.left, annotation.right)]
        return next((s for s in sides if s is not Kind.NONE), Kind.OPAQUE)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return Kind.NONE
    if isinstance(annotation, ast.Subscript):
        outer = (imports.resolve(annotation.value) or "").rpartition(".")[2]
        return annotated(annotation.slice, imports) if outer == "Optional" else Kind.OPAQUE
    name = imports.resolve(annotation) or ""
    last = name.rpartition(".")[2]
    if last == "Tensor" or name in {"torch.nn.Parameter", "torch.nn.parameter.Parameter"}:
        return Kind.TENSOR
    if is_module_class(name, imports):
        return Kind.MODULE
    return Kind.PLAIN if last in {"int", "float", "bool", "str", "Callable", "device", "dtype", "Size", "bytes"} else Kind.OPAQUE


def returns_spent(run: Execution) -> bool:
    """Whether every value that is returned was back-propagated just so, without keeping its graph."""
    roots = {e.values[0].own for e in run.events if e.did is Did.BACKWARD and e.values and not _keeps(e.node)}
    returned = [e.values[0] for e in run.events if e.did is Did.RETURN]
    return bool(returned) and all(v.own in roots for v in returned)


def _keeps(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(k.arg in {"retain_graph", "create_graph"} for k in node.keywords)


def study(module: Module) -> Study:
    if not isinstance(known := module.memo.get("study"), Study):
        module.memo["study"] = known = Study(module)
    return known

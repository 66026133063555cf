"""The values of one function of a file, worked out once and shared by all rules."""

from __future__ import annotations

import ast

from lifetime.linter.execute import Execution
from lifetime.linter.imports import Imports
from lifetime.linter.module import Function, Module
from lifetime.linter.module_names import is_module_class, methods, modules
from lifetime.linter.state import Env
from lifetime.linter.values import Answer, How, Kind

LONGEST = 4000
"""Lines. A longer function is generated, and nothing is claimed about it."""


class Study:
    """One file under study: its imports, its classes, and the walks done so far. It does not hold its module, which holds it."""

    def __init__(self, module: Module) -> None:
        self.imports = Imports(module)
        self.walks: dict[tuple[ast.AST, tuple[tuple[str, Kind], ...]], Execution | None] = {}
        self.classes: dict[ast.ClassDef, set[str]] = {}

    def walk(self, module: Module, scope: Function | ast.Module, known: dict[str, Kind] | None = None) -> Execution | None:
        """`scope` walked from its first statement to its last; None where it is too long. `known` types its parameters."""
        key = (scope, tuple(sorted((known or {}).items(), key=str)))
        if key not in self.walks:
            self.walks[key] = self._walk(module, scope, known or {})
        return self.walks[key]

    def _walk(self, module: Module, scope: Function | ast.Module, known: dict[str, Kind]) -> Execution | None:
        body = scope.body
        if not body or (body[-1].end_lineno or 0) - body[0].lineno > LONGEST:
            return None
        owner = None if isinstance(scope, ast.Module) else module.enclosing_class(scope)
        names = modules([scope], self.imports) | (self.modules_of(owner) if owner else set())
        run = Execution(self.imports, names, methods(owner))
        if not isinstance(scope, ast.Module):
            self.enter(run, scope, owner, known)
        run.block(body)
        run.exits.append(run.env)
        return run

    def enter(self, run: Execution, function: Function, owner: ast.ClassDef | None, known: dict[str, Kind]) -> None:
        """Binds the parameters and applies the decorators."""
        for decorator in function.decorator_list:
            run.grad = run.mode_of(decorator, run.grad)
        in_module = owner is not None and any((self.imports.resolve(b) or "").startswith("torch.nn.") for b in owner.bases)
        arguments = function.args
        for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            kind = known.get(arg.arg) or annotated(arg.annotation, run)
            if arg.arg == "self" and in_module:
                kind = Kind.MODULE
            run.bind(arg.arg, run.given(arg, Kind.MODULE if arg.arg in run.modules else kind))
        if arguments.vararg:
            kind = known.get(arguments.vararg.arg) or annotated(arguments.vararg.annotation, run)
            run.bind(arguments.vararg.arg, run.container(arguments.vararg, [run.given(arguments.vararg, kind)]))
        if arguments.kwarg:
            run.bind(arguments.kwarg.arg, run.given(arguments.kwarg))

    def modules_of(self, owner: ast.ClassDef) -> set[str]:
        if owner not in self.classes:
            self.classes[owner] = {n for n in modules([owner], self.imports) if n.startswith("self.")}
        return self.classes[owner]


def annotated(annotation: ast.expr | None, run: Execution) -> Kind:
    """The kind that an annotation promises: a tensor (also an optional one), a plain value, or nothing."""
    if annotation is None:
        return Kind.OPAQUE
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return Kind.OPAQUE
    if isinstance(annotation, ast.BinOp):
        sides = [annotated(s, run) for s in (annotation.left, annotation.right)]
        return next((s for s in sides if s is not Kind.NONE), Kind.OPAQUE)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return Kind.NONE
    if isinstance(annotation, ast.Subscript):
        outer = (run.imports.resolve(annotation.value) or "").rpartition(".")[2]
        return annotated(annotation.slice, run) if outer == "Optional" else Kind.OPAQUE
    name = run.imports.resolve(annotation) or ""
    last = name.rpartition(".")[2]
    if last == "Tensor" or name in {"torch.nn.Parameter", "torch.nn.parameter.Parameter"}:
        return Kind.TENSOR
    if is_module_class(annotation, run.imports):
        return Kind.MODULE
    return Kind.PLAIN if last in {"int", "float", "bool", "str", "Callable", "device", "dtype", "Size", "bytes"} else Kind.OPAQUE


def study(module: Module) -> Study:
    if not isinstance(known := module.memo.get("study"), Study):
        module.memo["study"] = known = Study(module)
    return known

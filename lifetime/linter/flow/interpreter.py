"""The whole machine: names, calls that are followed, context managers, fields."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.calls import Call
from lifetime.linter.flow.classes import is_autograd_function, named
from lifetime.linter.flow.index import imported as imported_names
from lifetime.linter.flow.index import index
from lifetime.linter.flow.managers import Managers
from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.state import State
from lifetime.linter.flow.values import EMPTY, Callee, ClassRef, Kind, Scope, Value, element, sequence, union
from lifetime.linter.module import Function, Module

FieldReader = Callable[[Module, "ClassRef | None", str, bool], "Value | None"]


class Interpreter(Managers):
    """Walks one function. `fields` says what a class keeps under an attribute that this function did not fill."""

    def __init__(self, module: Module, in_function: bool = False, fields: FieldReader | None = None) -> None:
        super().__init__(module, in_function)
        self.fields = fields

    def walk(self, function: Function, owner: ClassRef | None) -> list[tuple[State, Value, ast.AST | None]]:
        """Every normal return of `function`: the state there, the value and the statement (None: it ran off its end)."""
        state, scope = State(), Scope(self.module, owner=owner)
        arguments = _parameters(function.args)
        static = any(last_name(d) == "staticmethod" for d in function.decorator_list)
        for number, node in enumerate(arguments):
            value = self.argument(node, state, function)
            if number == 0 and owner is not None and (not static or is_autograd_function(owner)):
                scope.receiver = node.arg
                value = Value(path="ctx" if is_autograd_function(owner) else "self", cls=owner, instance=True)
            state.names.set(scope, node.arg, value)
        for star in filter(None, (function.args.vararg, function.args.kwarg)):
            state.names.set(scope, star.arg, sequence(self.argument(star, state, function)))
        end = self.run(function.body, state, scope)
        returns = list(self.exits.returns)
        return [*returns, (end, EMPTY, None)] if end is not None else returns

    # names

    def eval_Name(self, node: ast.Name, state: State, scope: Scope) -> Value:
        place = state.names.holder(scope, node.id)
        value = state.names.get(place, node.id)
        if value is not None:
            value = self.without_void(value, state)
            return value if value.path or value.sequence or not value.keys else replace(value, path=node.id)
        names = index(scope.module)
        if node.id in names.functions or node.id in names.classes:
            found = named(scope.module, node.id)
            return Value(callee=found, path=node.id) if isinstance(found, Callee) else Value(cls=found, path=node.id)
        if node.id in names.variables:
            return Value(keys=frozenset({self.key(Kind.UNKNOWN, node, state, node.id)}), path=node.id)
        return Value(path=node.id)

    def local(self, name: str, scope: Scope) -> bool:
        return name not in index(scope.module).variables

    def run_Import(self, node: ast.Import | ast.ImportFrom, state: State, scope: Scope) -> State | None:
        index(scope.module).imports.update(imported_names(node))
        return state

    run_ImportFrom = run_Import

    # fields

    def place(self, path: str, node: ast.Attribute, state: State, scope: Scope) -> Value:
        base, _, name = path.rpartition(".")
        context = base == "ctx" or base.endswith(".ctx")
        owner = scope.owner if context or base == "self" else self._class(base, scope)
        if self.fields is not None and (context or owner is not None):
            found = self.fields(self.module, owner, name, context)
            if found is not None and found.all_keys:
                return replace(found, path=path)
        return super().place(path, node, state, scope)

    def _class(self, name: str, scope: Scope) -> ClassRef | None:
        """The class of this file that is called so: what lies on a class is shared by all that name it."""
        found = named(scope.module, name) if name in index(scope.module).classes else None
        return found if isinstance(found, ClassRef) else None

    def method_save_for_backward(self, call: Call, state: State, scope: Scope) -> Value | None:
        items = tuple(call.args) if call.starred is None else None
        value = Value(items=items) if items is not None else sequence(union(*(element(a) if a.sequence else a for a in call.args)))
        self.events.stores.append(("ctx.saved_tensors", value))
        return EMPTY


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

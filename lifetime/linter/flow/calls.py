"""Calls: what is called with what; the vocabulary answers first, then what the file defines is followed."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from lifetime.linter.flow.expressions import Expressions
from lifetime.linter.flow.index import index
from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.state import State
from lifetime.linter.flow.values import EMPTY, Callee, Scope, Value, element, sequence

MODULES = {"torch", "th", "Tensor", "functools", "itertools", "operator", "copy", "collections"}
"""`torch.detach(x)`, `Tensor.detach(x)`: called on a module or class, the tensor being the first argument."""


@dataclass(eq=False)
class Call:
    """A call whose function and arguments were evaluated. `name` is the last part of what is called."""

    node: ast.Call
    name: str
    function: Value
    receiver: Value | None
    args: list[Value]
    keywords: dict[str | None, Value]
    starred: int | None = None
    """The argument that stands for any number of them (`*leaves`)."""

    @property
    def all(self) -> list[Value]:
        return [*self.args, *self.keywords.values()]

    def first(self) -> Value:
        return self.args[0] if self.args else EMPTY


class Calls(Expressions):
    """`method_NAME` and `call_NAME` answer for single names; `method` and `function` for families of them."""

    @abstractmethod
    def follow(self, callee: Callee, call: Call, state: State, scope: Scope) -> Value | None:
        """What the function returns, its effects applied; None when it is not followed."""

    @abstractmethod
    def lookup(self, call: Call, state: State, scope: Scope) -> Callee | None:
        """The function that is called, where it can be found."""

    @abstractmethod
    def method(self, call: Call, state: State, scope: Scope) -> Value | None:
        """What a method of a tensor or container yields; None when it is none of those known."""

    @abstractmethod
    def function(self, call: Call, state: State, scope: Scope) -> Value | None:
        """What a known function yields; None when it is none of those."""

    @abstractmethod
    def unknown(self, call: Call, state: State, scope: Scope) -> Value:
        """What is left: a backward, a helper known by its name only, or nothing known at all."""

    def eval_Call(self, node: ast.Call, state: State, scope: Scope) -> Value:
        call = self._prepare(node, state, scope)
        callee = call.function.callee or self.lookup(call, state, scope)
        if callee is None or call.name in {"detach", "requires_grad_"}:
            special = self._special(call, state, scope)
            if special is not None:
                return special
        if callee is not None:
            found = self.follow(callee, call, state, scope)
            if found is not None:
                return found
        return self.unknown(call, state, scope)

    def _prepare(self, node: ast.Call, state: State, scope: Scope) -> Call:
        receiver = None
        if isinstance(node.func, ast.Attribute):
            receiver = self.eval(node.func.value, state, scope)
            plain = node.func.attr == "grad"
            function = Value() if plain else self.attribute(receiver, node.func, state, scope)
        else:
            function = self.eval(node.func, state, scope)
        args: list[Value] = []
        starred = None
        for item in node.args:
            if isinstance(item, ast.Starred):
                value = self.eval(item.value, state, scope)
                args.extend(value.items if value.items is not None else [sequence(element(value))])
                starred = len(args) - 1 if value.items is None and starred is None else starred
            else:
                args.append(self.eval(item, state, scope))
        keywords = {k.arg: self.eval(k.value, state, scope) for k in node.keywords}
        return Call(node, _called(node.func, scope), function, receiver, args, keywords, starred)

    def _special(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.receiver is not None and not _on_module(call):
            method: Callable[..., Value | None] | None = getattr(self, f"method_{call.name}", None)
            found = method(call, state, scope) if method else self.method(call, state, scope)
            if found is not None:
                return found
        function: Callable[..., Value | None] | None = getattr(self, f"call_{call.name}", None)
        return function(call, state, scope) if function else self.function(call, state, scope)


def _called(function: ast.expr, scope: Scope) -> str:
    """The name of what is called, as it is called where it was imported from."""
    name = last_name(function)
    return (index(scope.module).imports.get(name, ("", ""))[1] or name) if isinstance(function, ast.Name) else name


def _on_module(call: Call) -> bool:
    owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    return owner is not None and last_name(owner) in MODULES

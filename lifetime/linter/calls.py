"""The value of a call."""

from __future__ import annotations

import ast

from lifetime.linter.evaluate import Expressions
from lifetime.linter.imports import dotted
from lifetime.linter.state import Did
from lifetime.linter.torch_names import (
    COLLECTING,
    DETACHING,
    HARMLESS,
    NO_GRADIENT,
    OPERATION_NAMESPACES,
    OPERATIONS,
    PLAIN_BUILTINS,
    PLAIN_FUNCTIONS,
    PLAIN_METHODS,
    PLAIN_NAMESPACES,
    TENSOR_ONLY,
)
from lifetime.linter.values import Answer, How, Kind, Value

APPENDING = {"append", "appendleft", "add", "extend", "insert", "setdefault", "extendleft", "put", "put_nowait"}
DRAINING = {"pop", "popleft", "popitem", "get", "values", "items", "keys", "copy"}


class Calls(Expressions):
    def call(self, node: ast.Call) -> Value:
        name = self.imports.resolve(node.func)
        if isinstance(node.func, ast.Attribute) and not (name or "").startswith("torch."):
            return self.method(node, node.func)
        arguments = self.arguments(node)
        if name and name.startswith("torch."):
            return self.torch_call(node, name, arguments)
        if self.is_builtin(node.func) and (builtin := self.builtin(node, name or "", arguments)):
            return builtin
        return self.callable(node, self.value(node.func), arguments)

    def is_builtin(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Name) and func.id not in self.env and func.id not in self.imports.defined

    def arguments(self, node: ast.Call) -> list[Value]:
        return [*(self.value(a) for a in node.args), *(self.value(k.value) for k in node.keywords)]

    def torch_call(self, node: ast.Call, name: str, arguments: list[Value]) -> Value:
        last = name.rpartition(".")[2]
        if name == "torch.autograd.backward":
            self.happened(Did.BACKWARD, node, *self.given_as(node, 0, "tensors"), *self.given_as(node, 1, "grad_tensors"))
            return self.plain(node)
        if name == "torch.autograd.grad":
            return self.gradient(node)
        if name.startswith("torch.nn.") and last[:1].isupper():
            return self.fresh(node, leaf=True) if last == "Parameter" else self.given(node, Kind.MODULE)
        if last in PLAIN_FUNCTIONS:
            return self.plain(node)
        if name.startswith(PLAIN_NAMESPACES) or last[:1].isupper():
            return self.derived(node, How.CALL, arguments)
        if last in NO_GRADIENT and name.removesuffix(last) in OPERATION_NAMESPACES:
            wanted = any(k.arg == "requires_grad" and getattr(k.value, "value", None) is True for k in node.keywords)
            return self.fresh(node, leaf=wanted)
        if name.removesuffix(last) in OPERATION_NAMESPACES and last.islower():
            return self.as_tensor(self.operation(node, arguments), node)
        return self.derived(node, How.CALL, arguments)

    def as_tensor(self, value: Value, node: ast.Call) -> Value:
        """torch's own operations return tensors, whatever is known of what goes in."""
        return Value(Kind.TENSOR, value.graph, value.own, value.leaf) if value.kind is not Kind.PLAIN else self.fresh(node)

    def given_as(self, node: ast.Call, position: int, name: str) -> list[Value]:
        """The argument of a call at `position` or under `name`; nothing where it is left out."""
        by_name = [k.value for k in node.keywords if k.arg == name]
        return [v for e in (*node.args[position : position + 1], *by_name) for v in self.results.get(e, [])[-1:]][:1]

    def gradient(self, node: ast.Call) -> Value:
        outputs = self.given_as(node, 0, "outputs")
        self.happened(Did.BACKWARD, node, *outputs, *self.given_as(node, 2, "grad_outputs"))
        recorded = any(k.arg == "create_graph" and getattr(k.value, "value", True) is not False for k in node.keywords)
        return self.operation(node, outputs) if recorded else self.fresh(node)

    def builtin(self, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
        if name in PLAIN_BUILTINS:
            return self.plain(node)
        if name in {"sum", "min", "max", "abs", "pow"}:
            return self.operation(node, arguments)
        if name.removeprefix("collections.") in COLLECTING:
            return self.collected(node, name, arguments)
        if name == "getattr" and len(node.args) > 1:
            return self.derived(node, How.PART, arguments[:1])
        return None

    def collected(self, node: ast.Call, name: str, arguments: list[Value]) -> Value:
        if name == "map" and len(arguments) > 1:
            return self.mapped(node, arguments)
        if name in {"zip", "enumerate"}:
            drawn = [self.drawn(v, a) for v, a in zip(arguments, node.args, strict=False)]
            counted = [self.plain(node)] if name == "enumerate" else []
            return self.container(node, [self.tuple(counted + drawn)])
        if (
            name in {"list", "tuple", "sorted", "reversed", "iter"}
            and len(arguments) == 1
            and arguments[0].kind is not Kind.CONTAINER
        ):
            how = self.ancestry.origin(arguments[0]).how
            known = how in (How.GIVEN, How.ITEM)
            return self.given(node) if known else self.container(node, [self.drawn(arguments[0], node)])
        return self.container(node, [i for v in arguments for i in (self.ancestry.contents(v) or [v])])

    def mapped(self, node: ast.Call, arguments: list[Value]) -> Value:
        """What the function makes of the items: the body of a lambda, or something that it was called with them for."""
        drawn = [self.drawn(v, a) for v, a in zip(arguments[1:], node.args[1:], strict=False)]
        function = node.args[0]
        if not isinstance(function, ast.Lambda) or len(function.args.args) != len(drawn):
            return self.container(node, [self.derived(node, How.CALL, drawn)])
        before = dict(self.env)
        for argument, value in zip(function.args.args, drawn, strict=True):
            self.bind(argument.arg, value)
        made = self.value(function.body)
        self.env = before
        return self.container(node, [made])

    def method(self, node: ast.Call, func: ast.Attribute) -> Value:
        receiver = self.value(func.value)
        arguments = self.arguments(node)
        name = func.attr
        if "backward" in name and not name.startswith("register"):
            self.happened(Did.BACKWARD, node, receiver, *arguments)
            return self.plain(node)
        if receiver.kind is Kind.CONTAINER or (name in APPENDING and receiver.kind is not Kind.TENSOR):
            return self.collection_method(node, name, receiver, arguments)
        if receiver.kind is Kind.OPAQUE and name in TENSOR_ONLY:
            self.ancestry.tensors.add(receiver.own)
        if self.has_method(receiver, name):
            return self.tensor_method(node, func, receiver, arguments)
        if name in {"parameters", "named_parameters"}:
            leaf = self.fresh(node, leaf=True)
            return self.container(node, [leaf if name == "parameters" else self.tuple([self.plain(node), leaf])])
        if receiver.kind is Kind.MODULE and name in {"forward", "__call__"}:
            return self.derived(node, How.FORWARD, arguments, Kind.OPAQUE, Answer.YES)
        if name == "apply" and receiver.tensor is not Answer.YES:
            return self.operation(node, arguments)
        attribute = self.imports.resolve(func) or ""
        if attribute.startswith("self.") and attribute.count(".") == 1 and name not in self.methods:
            callee = self.value(func)
            return self.callable(node, callee, arguments)
        return self.unknown(node, name, [receiver, *arguments])

    def has_method(self, receiver: Value, name: str) -> bool:
        if receiver.kind is Kind.TENSOR:
            return True
        known = name in TENSOR_ONLY or name in OPERATIONS or name in PLAIN_METHODS
        return receiver.kind is Kind.OPAQUE and (known or name in DETACHING)

    def tensor_method(self, node: ast.Call, func: ast.Attribute, receiver: Value, arguments: list[Value]) -> Value:
        name = func.attr
        if name in PLAIN_METHODS:
            return self.plain(node)
        if name == "requires_grad_":
            leaf = receiver.graph is Answer.NO and not any(getattr(a, "value", True) is False for a in node.args)
            return self.replaced(func.value, Value(Kind.TENSOR, receiver.graph, receiver.own, leaf))
        if name == "detach":
            return self.fresh(node)
        if name == "detach_":
            return self.replaced(func.value, self.fresh(node))
        if name in NO_GRADIENT:
            return self.fresh(node)
        operands = [receiver, *arguments]
        if name.endswith("_") and not name.endswith("__"):
            return self.replaced(func.value, self.operation(node, operands))
        result = self.operation(node, operands)
        return self.as_tensor(result, node) if name in TENSOR_ONLY else result

    def replaced(self, target: ast.expr, value: Value) -> Value:
        """An operation in place: whoever has the name sees the new value."""
        if name := dotted(target):
            self.bind(name, value)
        return value

    def collection_method(self, node: ast.Call, name: str, receiver: Value, arguments: list[Value]) -> Value:
        if name in APPENDING:
            for item in arguments:
                self.put(receiver, item, node)
            return self.plain(node)
        if name in {"clear"}:
            self.ancestry.contents(receiver).clear()
            return self.plain(node)
        if name == "update":
            for item in arguments:
                self.put(receiver, item, node)
            return self.plain(node)
        if name in DRAINING and receiver.kind is Kind.CONTAINER:
            item = self.item(receiver, node)
            return item if name in {"pop", "popleft", "get"} else self.container(node, [item])
        return self.unknown(node, name, [receiver, *arguments])

    def callable(self, node: ast.Call, callee: Value, arguments: list[Value]) -> Value:
        """A module, a function that was handed in, or a function of whose inside nothing is known."""
        if callee.kind is Kind.MODULE:
            return self.derived(node, How.FORWARD, arguments, Kind.OPAQUE, Answer.YES)
        function = self.imports.resolve(node.func) or ""
        head = function.split(".")[0]
        if callee.kind is Kind.OPAQUE and head not in self.imports.full and head not in self.imports.defined:
            self.passed(node, function.rpartition(".")[2], arguments)
            return self.derived(node, How.FORWARD, arguments)
        return self.unknown(node, function.rpartition(".")[2], arguments)

    def unknown(self, node: ast.Call, name: str, arguments: list[Value]) -> Value:
        if "backward" in name:
            self.happened(Did.BACKWARD, node, *arguments)
        self.passed(node, name, arguments)
        if self.is_spent(node.func):
            loss = self.ancestry.new(Kind.TENSOR, self.grad, How.CALL, node)
            self.happened(Did.SPENT, node, loss)
            return loss
        if self.is_record(node.func):
            return self.container(node, arguments)
        return self.derived(node, How.CALL, arguments)

    def is_record(self, func: ast.expr) -> bool:
        """Whether a call makes a named tuple or a dataclass of this file, which holds what it is given."""
        defined = self.imports.defined.get(dotted(func) or "")
        if not isinstance(defined, ast.ClassDef):
            return False
        said = [*defined.bases, *(d.func if isinstance(d, ast.Call) else d for d in defined.decorator_list)]
        return any((dotted(e) or "").endswith(("NamedTuple", "dataclass")) for e in said)

    def passed(self, node: ast.Call, name: str, arguments: list[Value]) -> None:
        handed = [v for v in arguments if self.ancestry.holds(v) is not Answer.NO]
        if handed and name not in HARMLESS:
            self.happened(Did.ARGUMENT, node, *handed)

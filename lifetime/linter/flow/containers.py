"""Containers and iteration: what goes in, what comes out, and what a loop over it visits."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import replace
from typing import TypeGuard

from lifetime.linter.flow.calls import Call, Calls
from lifetime.linter.flow.classes import record
from lifetime.linter.flow.conditions import is_null
from lifetime.linter.flow.expressions import PARTIAL
from lifetime.linter.flow.names import FRESH, last_name
from lifetime.linter.flow.state import State
from lifetime.linter.flow.values import EMPTY, SPANNING, Branches, Kind, Scope, Value, element, part, sequence, union

SAME = frozenset(
    {"list", "tuple", "set", "frozenset", "iter", "aiter", "reversed", "sorted", "deque", "dict", "OrderedDict", "cast"}
)
"""Functions whose result holds what their last argument holds."""
SCALAR = frozenset({"max", "min", "sum", "any", "all", "print", "str", "repr", "float", "int", "type", "id"})
SAME_METHODS = frozenset({"values", "copy", "__iter__"})
TAKES = frozenset({"pop", "popleft", "popitem", "get", "get_nowait", "__getitem__"})
GROWS = frozenset({"append", "appendleft", "add", "extend", "extendleft", "insert", "update", "put", "put_nowait", "setdefault"})
WEIGHTS = frozenset({"parameters", "named_parameters", "get_parameters", "trainable_parameters"})
KEEPS_LEAF = frozenset({"retain_grad", "detach_", "share_memory_", "zero_", "copy_", "add_", "mul_", "fill_", "__enter__"})
"""Methods that return the tensor itself."""


class Containers(Calls):
    """Lists, dictionaries, queues, and the functions that iterate."""

    @abstractmethod
    def put(self, target: ast.expr, value: Value, added: Value, state: State, scope: Scope, node: ast.AST) -> None:
        """The container `target` holds `value` now, of which `added` is new."""

    def method(self, call: Call, state: State, scope: Scope) -> Value | None:
        receiver = call.receiver or EMPTY
        if call.name in WEIGHTS:
            return sequence(self.fresh(Kind.WEIGHT, call.node, state))
        if call.name == "keys":
            return sequence(Value(index=receiver.all_keys))
        if call.name in SAME_METHODS and (receiver.sequence or receiver.keys):
            return sequence(element(receiver))
        if call.name in TAKES and (receiver.sequence or receiver.keys):
            if call.name.startswith("pop"):
                self.taken(receiver)
            return union(element(receiver), *call.args[1:])
        if call.name in GROWS:
            return self._grow(call, receiver, state, scope)
        if call.name in KEEPS_LEAF:
            self.events.used.update(receiver.all_keys if call.args else ())
            return receiver
        return None

    def _grow(self, call: Call, receiver: Value, state: State, scope: Scope) -> Value:
        given = call.args[-1] if call.args else EMPTY
        many = call.name in {"extend", "update", "extendleft"}
        added = union(*(element(v) if many else v for v in (given, *(call.keywords.values() if many else ()))))
        inner = union(element(receiver), added) if receiver.sequence else added
        target = _grown(call.node.func)
        if target is not None:
            held = Value(element=union(inner, EMPTY if receiver.sequence else element(receiver)), mapping=receiver.mapping)
            self.put(target, held, added, state, scope, call.node)
        return element(receiver) if call.name == "setdefault" else EMPTY

    def function(self, call: Call, state: State, scope: Scope) -> Value | None:
        if FRESH.match(call.name) and call.receiver is not None:
            return self.fresh(Kind.FRESH, call.node, state)
        if (names := record(call.function)) or call.name == "SimpleNamespace":
            return _record(call, names)
        if call.name in SAME and (call.args or not call.keywords):
            return self._same(call)
        if call.name in SCALAR:
            return EMPTY
        return None

    def _same(self, call: Call) -> Value:
        mapping = call.name in {"dict", "OrderedDict"}
        if not call.args:
            return Value(items=(), mapping=mapping)
        given = call.args[-1]
        if mapping and not given.mapping and element(given).items is not None:
            return Value(element=(element(given).items or (EMPTY,))[-1], mapping=True)
        return given if given.sequence else sequence(element(given))

    def method_items(self, call: Call, state: State, scope: Scope) -> Value | None:
        return sequence(Value(items=(EMPTY, element(call.receiver or EMPTY))))

    def method_clear(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.receiver and call.receiver.path:
            self.empty(call.receiver.path, state)
        return EMPTY

    def call_zip(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.starred is not None and len(call.args) == 1:
            inner = element(element(call.args[0]))
            rows = element(call.args[0])
            return Value(items=tuple(sequence(i) for i in rows.items)) if rows.items else sequence(sequence(inner))
        return sequence(Value(items=tuple(element(a) for a in call.args)))

    call_zip_longest = call_zip

    def call_enumerate(self, call: Call, state: State, scope: Scope) -> Value | None:
        inner = element(call.first())
        return sequence(Value(items=(Value(index=inner.all_keys), inner)))

    def call_range(self, call: Call, state: State, scope: Scope) -> Value | None:
        """The index of a loop over `len(leaves)` visits all of them; one that starts later does not."""
        start = call.node.args[0] if len(call.node.args) > 1 else None
        if start is not None and not (isinstance(start, ast.Constant) and start.value in {0, -1}):
            return EMPTY if not isinstance(start, ast.Constant) else sequence(Value(path=PARTIAL))
        counts = [n for a in call.node.args for n in ast.walk(a) if isinstance(n, ast.Name) or _is_len(n)]
        keys = frozenset().union(*(self.eval(c, state, scope).index for c in counts))
        return sequence(Value(index=keys, path="" if keys else SPANNING + ", ".join(map(ast.unparse, call.node.args))))

    def call_len(self, call: Call, state: State, scope: Scope) -> Value | None:
        return Value(index=call.first().all_keys)

    def call_next(self, call: Call, state: State, scope: Scope) -> Value | None:
        return element(call.first())

    def call_chain(self, call: Call, state: State, scope: Scope) -> Value | None:
        return sequence(union(*(element(a) for a in call.args)))

    def call_filter(self, call: Call, state: State, scope: Scope) -> Value | None:
        if len(call.args) != 2:
            return None
        inner = element(call.args[1])
        test = call.args[0].callee
        if test is None:
            name = last_name(call.node.args[0])
            kept = is_null(call.node.args[0]) or name in {"is_tensor", "isTensor", "bool"}
        else:
            answer = self.follow(test, replace(call, args=[inner], starred=None), state, scope) or EMPTY
            kept = self.selects(lambda _: answer.test or Branches(), inner, state)
        return sequence(inner if kept else part(inner, "?"))


def _record(call: Call, names: tuple[str, ...]) -> Value | None:
    """An object whose attributes are what it was called with; None where it is not clear which gets what."""
    if call.starred is not None or len(call.args) > len(names):
        return None
    given = {**dict(zip(names, call.args, strict=False)), **{str(name): value for name, value in call.keywords.items()}}
    return Value(items=tuple(given.values()), labels=tuple(given))


def _is_len(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and last_name(node.func) == "len"


def _grown(function: ast.expr) -> ast.expr | None:
    """The container that `container.append` adds to; `whole.setdefault(key, []).append` adds to an item of `whole`."""
    target = function.value if isinstance(function, ast.Attribute) else None
    match target:
        case ast.Call(func=ast.Attribute(value=whole, attr="setdefault"), args=[key, *_]):
            return ast.copy_location(ast.Subscript(whole, key, ast.Load()), target)
    return target

"""Calls: the vocabulary of torch and of containers; everything else is followed or stays unknown."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from lifetime.linter.flow.conditions import is_grad, is_null
from lifetime.linter.flow.expressions import Expressions
from lifetime.linter.flow.names import DETACHER, FRESH, MAPPER, REGROUPER, RELEASER, is_backward_name, last_name
from lifetime.linter.flow.scope import Scope
from lifetime.linter.flow.state import Cleared, State
from lifetime.linter.flow.values import EMPTY, Branches, Callee, Keys, Kind, Value, element, part, sequence, union

SAME = {
    "list",
    "tuple",
    "set",
    "frozenset",
    "iter",
    "reversed",
    "sorted",
    "deque",
    "dict",
    "OrderedDict",
    "nullcontext",
    "cast",
    "to_device",
}
SAME_METHODS = {"values", "copy", "__iter__"}
TAKES = {"pop", "popleft", "popitem", "get", "get_nowait", "__getitem__"}
GROWS = {"append", "appendleft", "add", "extend", "insert", "update", "put", "put_nowait", "setdefault", "extendleft"}
WEIGHTS = {"parameters", "named_parameters", "get_parameters", "trainable_parameters"}
KEEPS_LEAF = {"requires_grad_", "retain_grad", "detach_", "share_memory_", "zero_", "copy_", "add_", "mul_", "fill_", "__enter__"}


@dataclass
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
    """`call_NAME` for a plain function, `method_NAME` for a method, then what the file defines, then the unknown."""

    @abstractmethod
    def follow(self, callee: Callee, call: Call, state: State, scope: Scope) -> Value | None:
        """What the function returns, its effects applied; None when it is not followed."""

    @abstractmethod
    def lookup(self, call: Call, state: State, scope: Scope) -> Callee | None:
        """The function that is called, where it can be found."""

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
        return self._unknown(call, state, scope)

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
        return Call(node, last_name(node.func), function, receiver, args, keywords, starred)

    def _special(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.receiver is not None and not self._on_module(call):
            method: Callable[..., Value | None] | None = getattr(self, f"method_{call.name}", None)
            found = method(call, state, scope) if method else self._method(call, state, scope)
            if found is not None:
                return found
        function: Callable[..., Value | None] | None = getattr(self, f"call_{call.name}", None)
        return function(call, state, scope) if function else self._function(call, state, scope)

    def _on_module(self, call: Call) -> bool:
        """`torch.detach(x)`, `Tensor.detach(x)`: called on a module or class, the tensor being the first argument."""
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        return owner is not None and last_name(owner) in {
            "torch",
            "th",
            "Tensor",
            "functools",
            "itertools",
            "operator",
            "copy",
            "collections",
        }

    def _method(self, call: Call, state: State, scope: Scope) -> Value | None:
        receiver = call.receiver or EMPTY
        if call.name in WEIGHTS:
            return sequence(self.fresh(Kind.WEIGHT, call.node, state))
        if call.name == "keys":
            return sequence(Value(index=receiver.all_keys))
        if call.name in SAME_METHODS and (receiver.sequence or receiver.keys):
            return sequence(element(receiver))
        if call.name in TAKES and (receiver.sequence or receiver.keys):
            if call.name.startswith("pop"):
                self.events.emptied.add(receiver.path)
            return union(element(receiver), *call.args[1:])
        if call.name in GROWS:
            return self._grow(call, receiver, state, scope)
        if call.name in KEEPS_LEAF:
            return receiver
        return None

    def _grow(self, call: Call, receiver: Value, state: State, scope: Scope) -> Value:
        given = call.args[-1] if call.args else EMPTY
        many = call.name in {"extend", "update", "extendleft"}
        added = union(*(element(v) if many else v for v in (given, *(call.keywords.values() if many else ()))))
        inner = union(element(receiver), added) if receiver.sequence else added
        target = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        if target is not None:
            held = Value(element=union(inner, EMPTY if receiver.sequence else element(receiver)), mapping=receiver.mapping)
            self.put(target, held, added, state, scope, call.node)
        return element(receiver) if call.name == "setdefault" else EMPTY

    @abstractmethod
    def put(self, target: ast.expr, value: Value, added: Value, state: State, scope: Scope, node: ast.AST) -> None:
        """The container `target` holds `value` now, of which `added` is new."""

    def _function(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.name in FRESH and call.receiver is not None:
            return self.fresh(Kind.FRESH, call.node, state)
        if call.name in SAME and (call.args or not call.keywords):
            return self._same(call)
        if call.name in {"max", "min", "sum", "any", "all", "print", "len", "str", "repr", "float", "int", "type", "id"}:
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

    # tensors

    def detached(self, call: Call, value: Value, state: State) -> Value:
        made = self.fresh(Kind.DETACHED, call.node, state)
        return made if not value.sequence else sequence(made)

    def method_detach(self, call: Call, state: State, scope: Scope) -> Value | None:
        return self.detached(call, EMPTY, state)

    def call_detach(self, call: Call, state: State, scope: Scope) -> Value | None:
        return self.detached(call, EMPTY, state) if call.args else None

    def call_Variable(self, call: Call, state: State, scope: Scope) -> Value | None:
        return self.detached(call, EMPTY, state) if call.args else None

    def method_requires_grad_(self, call: Call, state: State, scope: Scope) -> Value | None:
        receiver = call.receiver or EMPTY
        given = call.node.args[0] if call.node.args else next((k.value for k in call.node.keywords), None)
        if not (isinstance(given, ast.Constant) and given.value is False):
            self.arm(receiver, state)
        return receiver

    def method_items(self, call: Call, state: State, scope: Scope) -> Value | None:
        return sequence(Value(items=(EMPTY, element(call.receiver or EMPTY))))

    def method_clear(self, call: Call, state: State, scope: Scope) -> Value | None:
        if call.receiver and call.receiver.path:
            self.empty(call.receiver.path, state)
        return EMPTY

    # attributes by name

    def call_getattr(self, call: Call, state: State, scope: Scope) -> Value | None:
        if len(call.node.args) < 2:
            return None
        if is_grad(call.node.args[1]):
            return self.read(call.node, call.node.args[0], call.first(), state, scope)
        name = call.node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            access = ast.copy_location(ast.Attribute(call.node.args[0], name.value, ast.Load()), call.node)
            return self.attribute(call.first(), access, state, scope)
        return None

    def call_setattr(self, call: Call, state: State, scope: Scope) -> Value | None:
        if len(call.node.args) == 3 and is_grad(call.node.args[1]) and is_null(call.node.args[2]):
            self.release(call.node, call.first(), state, scope)
        return EMPTY

    def call_delattr(self, call: Call, state: State, scope: Scope) -> Value | None:
        if len(call.node.args) == 2 and is_grad(call.node.args[1]):
            self.release(call.node, call.first(), state, scope)
        return EMPTY

    # iteration

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
            return EMPTY if not isinstance(start, ast.Constant) else sequence(Value(path="#partial"))
        counted = [
            n.args[0]
            for a in call.node.args
            for n in ast.walk(a)
            if isinstance(n, ast.Call) and last_name(n.func) == "len" and n.args
        ]
        keys = frozenset().union(*(self.eval(c, state, scope).all_keys for c in counted))
        return sequence(Value(index=keys))

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

    def call_map(self, call: Call, state: State, scope: Scope) -> Value | None:
        inner = [element(a) for a in call.args[1:]]
        visited = frozenset().union(*(i.all_keys for i in inner))
        return sequence(self.each(visited, state, lambda s: self.apply(call, inner, s, scope)))

    def apply(self, call: Call, inner: list[Value], state: State, scope: Scope) -> Value:
        """The function that is the first argument of `call`, called with `inner`."""
        if call.args and call.args[0].callee is not None:
            found = self.follow(call.args[0].callee, replace(call, args=inner, keywords={}, starred=None), state, scope)
            if found is not None:
                return found
        given = call.node.args[0]
        if isinstance(given, ast.Call) and last_name(given.func) == "attrgetter" and any(map(is_grad, given.args)):
            return self.read(call.node, call.node.args[1], inner[0] if inner else EMPTY, state, scope)
        if last_name(given) == "detach":
            return self.detached(call, EMPTY, state)
        return self.fresh(Kind.UNKNOWN, call.node, state)

    def call_partial(self, call: Call, state: State, scope: Scope) -> Value | None:
        callee = call.first().callee
        return Value(callee=replace(callee, bound=(*callee.bound, *call.args[1:]))) if callee else None

    # the unknown

    def _outputs(self, call: Call) -> Keys:
        """`out.backward(g)`, `autograd.backward(out, g)`, `run_backward(tensors=out, ...)`."""
        given = [call.receiver or EMPTY, *call.args[:1], *(v for k, v in call.keywords.items() if k == "tensors")]
        if call.name == "backward" and call.receiver is not None and last_name(getattr(call.node.func, "value", call.node)) != "autograd":
            given = given[:1]
        return frozenset().union(*(v.all_keys for v in given))

    def _unknown(self, call: Call, state: State, scope: Scope) -> Value:
        if is_backward_name(call.name):
            self.events.outputs |= self._outputs(call)
            state.fill()
            return self.fresh(Kind.UNKNOWN, call.node, state)
        given = [v for v in call.all if v.all_keys]
        self.events.used.update(k for v in given for k in v.all_keys)
        leaves = frozenset(k for v in given for k in v.all_keys if self.is_leaf(k))
        mapped = next((v for v in call.all if v.callee is not None), None)
        if mapped is not None and MAPPER.search(call.name) and mapped is call.args[0] and len(call.args) > 1:
            return self.call_map(call, state, scope) or EMPTY
        if leaves and state.ran and RELEASER.search(call.name):
            # Not understood, and its name promises a release: silence.
            state.clear(leaves, Cleared.VOID)
        if call.name in {"tree_flatten", "flatten_tree"} and given:
            return Value(items=(sequence(element(call.first())), EMPTY))
        if DETACHER.search(call.name):
            return (
                sequence(self.fresh(Kind.DETACHED, call.node, state))
                if call.name != "detach"
                else self.detached(call, EMPTY, state)
            )
        if given and REGROUPER.search(call.name):
            return sequence(union(*(element(v) for v in given)))
        return self.fresh(Kind.UNKNOWN, call.node, state)

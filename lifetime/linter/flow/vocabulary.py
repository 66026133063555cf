"""The vocabulary of torch: detaching, arming, reading and releasing by name, mapping, and the unknown."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from lifetime.linter.flow.calls import Call
from lifetime.linter.flow.conditions import is_grad, is_null
from lifetime.linter.flow.containers import Containers
from lifetime.linter.flow.names import DETACHER, MAPPER, REGROUPER, RELEASER, is_backward_name, last_name
from lifetime.linter.flow.state import Cleared, State
from lifetime.linter.flow.values import EMPTY, Keys, Kind, Scope, Value, element, sequence, union

LATER = re.compile(r"hook|register|submit|defer|delay|later|spawn|thread|process|callback|push|put|schedule|queue", re.IGNORECASE)
"""What keeps the function that it is handed and calls it another time, if ever."""
DEFERS = {"callback", "push", "enter_context", "push_async_callback"}
"""What an `ExitStack` runs when its block ends."""


class Vocabulary(Containers):
    """What torch's own functions do to leaves, and what an unknown one may do."""

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
        if len(call.node.args) != 3:
            return EMPTY
        base, (_, name, given) = call.first(), call.node.args
        if is_grad(name) and is_null(given):
            self.release(call.node, base, state, scope)
        elif isinstance(name, ast.Constant) and isinstance(name.value, str) and base.path and not base.path.startswith("#"):
            self.publish(f"{base.path}.{name.value}", call.node, call.args[2], state, scope)
        return EMPTY

    def call_delattr(self, call: Call, state: State, scope: Scope) -> Value | None:
        if len(call.node.args) == 2 and is_grad(call.node.args[1]):
            self.release(call.node, call.first(), state, scope)
        return EMPTY

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
        if call.first().runs is not None:
            return call.first()
        return Value(callee=replace(callee, bound=(*callee.bound, *call.args[1:]))) if callee else None

    def _outputs(self, call: Call) -> Keys:
        """`out.backward(g)`, `autograd.backward(out, g)`, `run_backward(tensors=out, ...)`."""
        given = [call.receiver or EMPTY, *call.args[:1], *(v for k, v in call.keywords.items() if k == "tensors")]
        if call.function.runs is not None and call.receiver is None:
            return call.function.runs
        if (
            call.name == "backward"
            and call.receiver is not None
            and last_name(getattr(call.node.func, "value", call.node)) != "autograd"
        ):
            given = given[:1]
        return frozenset().union(*(v.all_keys for v in given))

    def _given(self, call: Call) -> list[Value]:
        """The gradients in `out.backward(g)`, `autograd.backward(out, g)`, `run(g)`."""
        named = [v for k, v in call.keywords.items() if k in {"gradient", "grad_tensors"}]
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        of_tensor = call.function.runs is not None and (owner is None or last_name(owner) != "autograd")
        return [*named, *(call.args[:1] if of_tensor else call.args[1:2])]

    def unknown(self, call: Call, state: State, scope: Scope) -> Value:
        if is_backward_name(call.name) or call.function.runs is not None:
            self.events.outputs |= self._outputs(call)
            self.events.given.update(k for v in self._given(call) for k in v.all_keys)
            self.events.runs.add(call.node)
            state.fill()
            return self.fresh(Kind.UNKNOWN, call.node, state)
        given = [v for v in call.all if v.all_keys]
        self.events.used.update(k for v in given for k in v.all_keys)
        leaves = frozenset(k for v in given for k in v.all_keys if self.is_leaf(k))
        mapped = next((v for v in call.all if v.callee is not None), None)
        self._called_back(call, state, scope)
        if mapped is not None and MAPPER.search(call.name) and mapped is call.args[0] and len(call.args) > 1:
            return self.call_map(call, state, scope) or EMPTY
        if call.name in DEFERS:
            self.events.deferred |= leaves.union(*(_bound(v) for v in call.args))
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

    def _called_back(self, call: Call, state: State, scope: Scope) -> None:
        """A function of this function that something unknown is handed is called by it, with what else it was handed."""
        if LATER.search(call.name):
            return
        others = union(*(element(v) for v in call.all if v.callee is None))
        for value in call.all:
            if value.callee is not None and value.callee.closure is not None:
                arguments = value.callee.node.args
                given = [others] * len([*arguments.posonlyargs, *arguments.args])
                self.follow(value.callee, replace(call, args=given, keywords={}, starred=None), state, scope)


def _bound(value: Value) -> Keys:
    """What a context manager that was not entered yet holds."""
    call = value.manager[1] if value.manager else None
    return frozenset().union(*(v.all_keys for v in call.all)) if isinstance(call, Call) else frozenset()

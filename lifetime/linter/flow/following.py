"""Following a call: finding the function, binding its parameters, running it in the state of the caller."""

from __future__ import annotations

import ast
from dataclasses import replace

from lifetime.linter.flow.calls import Call
from lifetime.linter.flow.classes import binding, member, method, named
from lifetime.linter.flow.index import index
from lifetime.linter.flow.machine import Exits
from lifetime.linter.flow.names import INTERESTING, last_name
from lifetime.linter.flow.state import State, join
from lifetime.linter.flow.statements import Statements
from lifetime.linter.flow.values import EMPTY, Callee, Scope, Value, element, part, sequence, union
from lifetime.linter.module import Function

DEPTH = 6
"""Calls within calls that are followed."""


class Following(Statements):
    """Functions of this file, its classes and its imports, closures and lambdas."""

    def lookup(self, call: Call, state: State, scope: Scope) -> Callee | None:
        function = call.node.func
        if call.function.cls is not None and not call.function.instance:
            return method(call.function.cls, "__init__")
        if isinstance(function, ast.Name):
            return self._by_name(function.id, call, scope)
        if not isinstance(function, ast.Attribute) or call.receiver is None:
            return None
        owner = call.receiver.cls
        if owner is not None:
            found = method(owner, function.attr, skip_own=_is_super(function.value))
            return replace(found, bound=binding(found.node, call.receiver, not call.receiver.instance)) if found else None
        if isinstance(function.value, ast.Name) and self._worth(call):
            found_member = member(scope.module, function.value.id, function.attr)
            return found_member if isinstance(found_member, Callee) else None
        return None

    def _by_name(self, name: str, call: Call, scope: Scope) -> Callee | None:
        names = index(scope.module)
        if name in names.functions or name not in names.imports or not self._worth(call):
            return None
        found = named(scope.module, name)
        return found if isinstance(found, Callee) else None

    def _worth(self, call: Call) -> bool:
        """Files are read only for helpers that get tensors, or promise some."""
        return bool(INTERESTING.search(call.name)) or any(v.all_keys for v in call.all)

    def call_super(self, call: Call, state: State, scope: Scope) -> Value | None:
        return Value(path="self", cls=scope.owner, instance=True) if scope.owner else None

    def computed(self, base: Value, node: ast.Attribute, state: State, scope: Scope) -> Value | None:
        callee = method(base.cls, node.attr) if base.cls is not None and base.instance else None
        if callee is None or not {"property", "cached_property"} & {
            last_name(d) for d in getattr(callee.node, "decorator_list", ())
        }:
            return None
        made = self.accesses.setdefault(node, ast.copy_location(ast.Call(node, [], []), node))
        return self.follow(replace(callee, bound=(base,)), Call(made, node.attr, EMPTY, base, [], {}), state, scope)

    def follow(self, callee: Callee, call: Call, state: State, scope: Scope) -> Value | None:
        if len(self.context) >= DEPTH or any(c is call.node for c in self.context):
            return None
        if not any(self.is_leaf(k) for v in call.all for k in v.all_keys) and not self._interesting(callee):
            return None
        if _is_manager(callee.node):
            return Value(manager=(callee, call))
        inner = Scope(callee.module, callee.closure, callee.owner)
        made = self._made(call, callee)
        self._bind(callee, made or call, state, inner)
        value = self._execute(callee, call, state, inner)
        return made.args[0] if made else value

    def _made(self, call: Call, callee: Callee) -> Call | None:
        """For a class that is called: the same call with the new object in front."""
        if call.function.cls is None or call.function.instance or callee.bound:
            return None
        made = Value(path=f"#{id(call.node)}", cls=call.function.cls, instance=True)
        starred = None if call.starred is None else call.starred + 1
        return replace(call, args=[made, *call.args], starred=starred)

    def _execute(self, callee: Callee, call: Call, state: State, inner: Scope) -> Value | None:
        saved = self.exits, self.loops, self.context
        self.exits, self.loops, self.context = Exits(), [], (*self.context, call.node)
        try:
            if isinstance(callee.node, ast.Lambda):
                return self.eval(callee.node.body, state, inner)
            end = self.run(callee.node.body, state.copy(), inner)
            returns = self.exits.returns
        finally:
            self.exits, self.loops, self.context = saved
        capturing = state.capturing
        behind = join([*(s for s, _, _ in returns), end])
        if behind is None:
            return EMPTY
        state.become(behind)
        if capturing is not None:
            state.capturing = capturing
        if not self._defines(callee):
            state.names.forget(inner)
        values = [v for _, v, _ in returns]
        found = union(*values)
        return _tested(returns, found) if len(values) == 1 and end is None else found

    def _defines(self, callee: Callee) -> bool:
        """Whether a function of its own may outlive the call and still see its names."""
        memo = callee.module.memo.setdefault("defines", {})
        assert isinstance(memo, dict)
        if callee.node not in memo:
            nested = (n for n in ast.walk(callee.node) if n is not callee.node)
            memo[callee.node] = any(isinstance(n, (ast.FunctionDef, ast.Lambda)) for n in nested)
        return bool(memo[callee.node])

    def _interesting(self, callee: Callee) -> bool:
        memo = callee.module.memo.setdefault("interesting", {})
        assert isinstance(memo, dict)
        if callee.node not in memo:
            lines = callee.module.lines[callee.node.lineno - 1 : callee.node.end_lineno]
            memo[callee.node] = bool(INTERESTING.search("\n".join(lines)))
        return bool(memo[callee.node])

    def _bind(self, callee: Callee, call: Call, state: State, scope: Scope) -> None:
        arguments = callee.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        given = [*callee.bound, *call.args]
        star = None if call.starred is None else call.starred + len(callee.bound)
        if callee.owner is not None and names:
            scope.receiver = names[0]
        for number, name in enumerate(names):
            if name in call.keywords:
                value = call.keywords[name]
            elif star is not None and number >= star:
                value = part(element(given[star]), f"[{number - star}]")
            else:
                value = given[number] if number < len(given) else EMPTY
            state.names.set(scope, name, value)
        for node in arguments.kwonlyargs:
            state.names.set(scope, node.arg, call.keywords.get(node.arg, EMPTY))
        if arguments.vararg is not None:
            rest = given[min(len(names), star if star is not None else len(names)) :]
            spread = sequence(union(*(element(v) if v.sequence else v for v in rest)))
            state.names.set(scope, arguments.vararg.arg, Value(items=tuple(rest)) if star is None else spread)
        if arguments.kwarg is not None:
            named_ones = (a.arg for a in arguments.kwonlyargs)
            rest_named = [v for k, v in call.keywords.items() if k not in {*names, *named_ones}]
            state.names.set(scope, arguments.kwarg.arg, sequence(union(*(element(v) if v.sequence else v for v in rest_named))))


def _is_manager(node: Function | ast.Lambda) -> bool:
    return not isinstance(node, ast.Lambda) and any(last_name(d).endswith("contextmanager") for d in node.decorator_list)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "super"


def _tested(returns: list[tuple[State, Value, ast.AST | None]], value: Value) -> Value:
    test = returns[0][1].test
    return replace(value, test=test) if test is not None else value

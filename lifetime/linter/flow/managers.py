"""Context managers: what they do before and after the body of a `with`, early exits included."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.calls import Call
from lifetime.linter.flow.classes import method
from lifetime.linter.flow.following import Following
from lifetime.linter.flow.machine import Exits
from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.state import State, join
from lifetime.linter.flow.values import EMPTY, Callee, Scope, Value

Body = Callable[[State, Value], "State | None"]


class Managers(Following):
    """Generators that are context managers, and objects with `__enter__` and `__exit__`."""

    on_yield: Callable[[State], State | None] | None = None

    def run_With(self, node: ast.With | ast.AsyncWith, state: State, scope: Scope) -> State | None:
        return self._with(node.items, node.body, state, scope)

    run_AsyncWith = run_With

    def _with(self, items: list[ast.withitem], body: list[ast.stmt], state: State, scope: Scope) -> State | None:
        if not items:
            return self.run(body, state, scope)
        item, rest = items[0], items[1:]
        value = self.eval(item.context_expr, state, scope)

        def inside(entered: State, given: Value) -> State | None:
            if item.optional_vars is not None:
                self.assign(item.optional_vars, given, entered, scope)
            return self._with(rest, body, entered, scope)

        if value.manager is not None:
            return self._around(value.manager, state, inside)
        leaving = method(value.cls, "__exit__") if value.cls is not None and value.instance else None
        if leaving is None or value.cls is None:
            return inside(state, value)
        entering = method(value.cls, "__enter__")
        given = self._method_of(value, entering, item.context_expr, state, scope) if entering else value
        outer, self.exits = self.exits, Exits()
        end = inside(state, given)
        inner, self.exits = self.exits, outer
        for early, result, at in inner.returns:
            self._method_of(value, leaving, item.context_expr, early, scope)
            self.exits.returns.append((early, result, at))
        for found, into in ((inner.breaks, outer.breaks), (inner.continues, outer.continues)):
            for early in found:
                self._method_of(value, leaving, item.context_expr, early, scope)
            into.extend(found)
        if end is not None:
            self._method_of(value, leaving, item.context_expr, end, scope)
        return end

    def _method_of(self, value: Value, callee: Callee, node: ast.expr, state: State, scope: Scope) -> Value:
        made = ast.copy_location(ast.Call(node, [], []), node)
        call = Call(made, callee.node.name if not isinstance(callee.node, ast.Lambda) else "", EMPTY, value, [], {})
        return self.follow(replace(callee, bound=(value,)), call, state, scope) or EMPTY

    def _around(self, manager: tuple[Callee, object], state: State, body: Callable[[State, Value], State | None]) -> State | None:
        """Run the generator with `body` in the place of its `yield`; what leaves the body early runs the rest of it too."""
        callee, call = manager
        assert isinstance(call, Call) and not isinstance(callee.node, ast.Lambda)
        outer, hook = self.exits, self.on_yield
        early = Exits()
        scope = Scope(callee.module, callee.closure, callee.owner)
        self._bind(callee, call, state, scope)

        def run(resume: Callable[[State, Value], State | None], start: State) -> State | None:
            self.exits = Exits()
            self.on_yield = lambda s: resume(s, EMPTY)
            try:
                end = self.run(callee.node.body, start, scope)  # type: ignore[arg-type]
                return join([end, *(s for s, _, _ in self.exits.returns)])
            finally:
                self.exits, self.on_yield = outer, hook

        def resume(entered: State, given: Value) -> State | None:
            within, hook_within = self.exits, self.on_yield
            self.exits, self.on_yield = early, hook
            end = body(entered, given)
            self.exits, self.on_yield = within, hook_within
            return end

        start = state.copy()
        end = run(resume, state)
        for left, result, at in early.returns:
            if (after := run(lambda _, __, left=left: left, start.copy())) is not None:  # type: ignore[misc]
                outer.returns.append((after, result, at))
        outer.breaks += early.breaks
        outer.continues += early.continues
        return end

    def run_Expr(self, node: ast.Expr, state: State, scope: Scope) -> State | None:
        if isinstance(node.value, ast.Yield) and self.on_yield is not None:
            return self.on_yield(state)
        self.eval(node.value, state, scope)
        leaves = isinstance(node.value, ast.Call) and last_name(node.value.func) in {"exit", "_exit", "abort"}
        return None if leaves else state

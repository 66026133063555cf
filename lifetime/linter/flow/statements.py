"""Statements: paths part and meet, loops visit, names are bound and attributes filled."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lifetime.linter.flow.binding import Binding
from lifetime.linter.flow.machine import Exits
from lifetime.linter.flow.state import State, after_loop, join
from lifetime.linter.flow.values import EMPTY, Callee, Keys, Scope, Value, element, iterate, unpack, visited

ROUNDS = 2
"""Two rounds of a loop: the second sees what the first left behind."""


class Statements(Binding):
    """`run` executes a block and returns the state behind it, None where no path gets there."""

    def run(self, body: list[ast.stmt], state: State | None, scope: Scope) -> State | None:
        for statement in body:
            if state is None or state.dead:
                return None
            self.spend()
            method: Callable[[ast.stmt, State, Scope], State | None] | None
            method = getattr(self, f"run_{type(statement).__name__}", None)
            state = method(statement, state, scope) if method else self._other_statement(statement, state, scope)
        return state

    def _other_statement(self, node: ast.stmt, state: State, scope: Scope) -> State | None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child, state, scope)
        return state

    def run_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, state: State, scope: Scope) -> State | None:
        state.names.set(scope, node.name, Value(callee=Callee(node, scope.module, scope, scope.owner)))
        return state

    run_AsyncFunctionDef = run_FunctionDef

    def run_ClassDef(self, node: ast.ClassDef, state: State, scope: Scope) -> State | None:
        return state

    def run_Global(self, node: ast.Global, state: State, scope: Scope) -> State | None:
        scope.function.globals.update(node.names)
        return state

    def run_Nonlocal(self, node: ast.Nonlocal, state: State, scope: Scope) -> State | None:
        scope.function.nonlocals.update(node.names)
        return state

    # leaving

    def run_Return(self, node: ast.Return, state: State, scope: Scope) -> State | None:
        value = self.eval(node.value, state, scope)
        self.exits.returns.append((state, value, node))
        return None

    def run_Raise(self, node: ast.Raise, state: State, scope: Scope) -> State | None:
        self._other_statement(node, state, scope)
        return None

    def run_Break(self, node: ast.Break, state: State, scope: Scope) -> State | None:
        self.exits.breaks.append(state)
        return None

    def run_Continue(self, node: ast.Continue, state: State, scope: Scope) -> State | None:
        self.exits.continues.append(state)
        return None

    def run_Assert(self, node: ast.Assert, state: State, scope: Scope) -> State | None:
        yes, _ = self.branch(node.test, state, scope)
        return yes

    # branching

    def run_If(self, node: ast.If, state: State, scope: Scope) -> State | None:
        yes, no = self.branch(node.test, state, scope)
        return join([self.run(node.body, yes, scope), self.run(node.orelse, no, scope)])

    def run_Match(self, node: ast.Match, state: State, scope: Scope) -> State | None:
        subject = self.eval(node.subject, state, scope)
        ends: list[State | None] = []
        total = False
        for case in node.cases:
            entry = state.copy()
            self._pattern(case.pattern, subject, entry, scope)
            if case.guard is not None:
                entry, _ = self.branch(case.guard, entry, scope)
            ends.append(self.run(case.body, entry, scope))
            total = total or (case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None)
        return join(ends if total else [*ends, state])

    def _pattern(self, pattern: ast.pattern, value: Value, state: State, scope: Scope) -> None:
        match pattern:
            case ast.MatchSequence(patterns=patterns):
                star = next((i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)), None)
                for each, given in zip(patterns, unpack(value, len(patterns), star), strict=True):
                    self._pattern(each, given, state, scope)
            case ast.MatchAs(pattern=inner_pattern, name=name):
                if inner_pattern is not None:
                    self._pattern(inner_pattern, value, state, scope)
                if name:
                    state.names.set(scope, name, value)
            case ast.MatchStar(name=str(name)):
                state.names.set(scope, name, value)
            case ast.MatchMapping(patterns=patterns) | ast.MatchOr(patterns=patterns):
                inner = element(value) if isinstance(pattern, ast.MatchMapping) else value
                for p in patterns:
                    self._pattern(p, inner, state, scope)
            case ast.MatchClass(patterns=patterns, kwd_patterns=named):
                for p in [*patterns, *named]:
                    self._pattern(p, value, state, scope)

    # loops

    def run_For(self, node: ast.For | ast.AsyncFor, state: State, scope: Scope) -> State | None:
        inner = iterate(self.eval(node.iter, state, scope))

        def enter(round: State) -> None:
            self.assign(node.target, inner, round, scope)

        return self._loop(node, state, scope, enter, visited(inner))

    run_AsyncFor = run_For

    def run_While(self, node: ast.While, state: State, scope: Scope) -> State | None:
        names = [
            n for n in ast.walk(node.test) if isinstance(n, (ast.Name, ast.Attribute)) and not isinstance(node.test, ast.Constant)
        ]
        seen: Keys = frozenset().union(*(self.eval(n, state.copy(), scope).all_keys for n in names))

        def enter(round: State) -> None:
            yes, _ = self.branch(node.test, round, scope)
            round.become(yes)

        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return self._loop(node, state, scope, enter, seen, endless)

    def _loop(
        self,
        node: ast.For | ast.AsyncFor | ast.While,
        state: State,
        scope: Scope,
        enter: Callable[[State], None],
        seen: Keys,
        endless: bool = False,
    ) -> State | None:
        outer = self.exits
        before, entry = state, state.copy()
        self.loops.append(node)
        for _ in range(ROUNDS):
            self.exits = Exits(returns=outer.returns)
            round = entry.copy()
            enter(round)
            end = self.run(node.body, round, scope)
            ends = [s for s in [end, *self.exits.continues] if s is not None]
            breaks = self.exits.breaks
            again = join([before.copy(), *ends])
            if again is None:
                break
            entry = again
        self.loops.pop()
        self.exits = outer
        behind = join(breaks) if endless else after_loop(before, ends, breaks, seen)
        if behind is not None and node.orelse and not endless:
            return self.run(node.orelse, behind, scope)
        return behind

    def run_Try(self, node: ast.Try, state: State, scope: Scope) -> State | None:
        outer, self.exits = self.exits, Exits()
        before = state.copy()
        end = self.run(node.body, state, scope)
        inside = [s for s, _, _ in self.exits.returns] if end is None else [end]
        ends = [self.run(node.orelse, end.copy(), scope) if end is not None else None]
        for handler in node.handlers:
            entry = join([before.copy(), *(s.copy() for s in inside)])
            if handler.name and entry is not None:
                entry.names.set(scope, handler.name, EMPTY)
            ends.append(self.run(handler.body, entry, scope))
        inner, self.exits = self.exits, outer
        if not node.finalbody:
            self._pass_on(inner)
            return join(ends)
        self._finally(node.finalbody, inner, scope)
        return self.run(node.finalbody, join(ends), scope)

    run_TryStar = run_Try

    def _pass_on(self, inner: Exits) -> None:
        self.exits.returns += inner.returns
        self.exits.breaks += inner.breaks
        self.exits.continues += inner.continues

    def _finally(self, body: list[ast.stmt], inner: Exits, scope: Scope) -> None:
        """Early exits run `body` first."""
        for state, value, node in inner.returns:
            if (end := self.run(body, state, scope)) is not None:
                self.exits.returns.append((end, value, node))
        for found, into in ((inner.breaks, self.exits.breaks), (inner.continues, self.exits.continues)):
            into.extend(s for s in (self.run(body, state, scope) for state in found) if s is not None)

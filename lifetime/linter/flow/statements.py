"""Statements: paths part and meet, loops visit, names are bound and attributes filled."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.calls import Calls
from lifetime.linter.flow.conditions import is_null
from lifetime.linter.flow.machine import Exits
from lifetime.linter.flow.scope import Scope
from lifetime.linter.flow.state import State, after_loop, join
from lifetime.linter.flow.values import EMPTY, Callee, Keys, Value, element, iterate, sequence, union, unpack, visited

ROUNDS = 2
"""Two rounds of a loop: the second sees what the first left behind."""


class Statements(Calls):
    """`run` executes a block and returns the state behind it, None where no path gets there."""

    def run(self, body: list[ast.stmt], state: State | None, scope: Scope) -> State | None:
        for statement in body:
            if state is None:
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
                for inner, given in zip(patterns, unpack(value, len(patterns), star), strict=True):
                    self._pattern(inner, given, state, scope)
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
        if inner.path == "#partial":
            inner = Value(path="#partial")

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

    # binding

    def run_Assign(self, node: ast.Assign, state: State, scope: Scope) -> State | None:
        value = self.eval(node.value, state, scope)
        for target in node.targets:
            self.store(target, value, node.value, state, scope)
        return state

    def run_AnnAssign(self, node: ast.AnnAssign, state: State, scope: Scope) -> State | None:
        if node.value is not None:
            self.store(node.target, self.eval(node.value, state, scope), node.value, state, scope)
        return state

    def run_AugAssign(self, node: ast.AugAssign, state: State, scope: Scope) -> State | None:
        load = ast.copy_location(_loaded(node.target), node.target)
        left, right = self.eval(load, state, scope), self.eval(node.value, state, scope)
        value = self.combine(node, left, right, state)
        if not isinstance(node.target, ast.Attribute) or node.target.attr != "grad":
            kept = value if value.sequence or not left.keys else replace(left, grads=left.grads | right.all_grads)
            self.assign(node.target, kept, state, scope)
        return state

    def store(self, target: ast.expr, value: Value, source: ast.expr, state: State, scope: Scope) -> None:
        """One target of an assignment of `source`; targets and sources are paired where both are spelled out."""
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(source, (ast.Tuple, ast.List)):
            plain = not any(isinstance(e, ast.Starred) for e in [*target.elts, *source.elts])
            if (
                plain
                and len(target.elts) == len(source.elts)
                and value.items is not None
                and len(value.items) == len(target.elts)
            ):
                for t, v, s in zip(target.elts, value.items, source.elts, strict=True):
                    self.store(t, v, s, state, scope)
                return
        if isinstance(target, ast.Attribute) and target.attr == "grad":
            self._set_grad(target, value, source, state, scope)
        elif isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            owner = self.eval(target.value, state, scope)
            if not (isinstance(source, ast.Constant) and source.value is False):
                self.arm(owner, state)
        else:
            self.assign(target, value, state, scope)

    def _set_grad(self, target: ast.Attribute, value: Value, source: ast.expr, state: State, scope: Scope) -> None:
        """None releases, and so does what `.grad` was before; something computed from it does not. The unknown passes for a release."""
        owner = self.eval(target.value, state, scope)
        own = value.all_grads & owner.all_keys
        if is_null(source) or value.empty or not own or value.earlier:
            self.release(target, owner, state, scope)

    def assign(self, target: ast.expr, value: Value, state: State, scope: Scope) -> None:
        match target:
            case ast.Name():
                self._assign_name(target, value, state, scope)
            case ast.Tuple() | ast.List():
                star = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), None)
                for inner, given in zip(target.elts, unpack(value, len(target.elts), star), strict=True):
                    self.assign(inner, given, state, scope)
            case ast.Starred():
                self.assign(target.value, value, state, scope)
            case ast.Attribute():
                if target.attr == "grad":
                    self._set_grad(target, value, target, state, scope)
                else:
                    self._assign_attribute(target, value, state, scope)
            case ast.Subscript():
                self._assign_item(target, value, state, scope)

    def _assign_name(self, target: ast.Name, value: Value, state: State, scope: Scope) -> None:
        name = target.id
        if value.all_grads or any(map(self.is_leaf, value.all_keys)):
            self.events.holding.add(name)
        state.assumed = frozenset(a for a in state.assumed if name not in a[0])
        place: Scope | None = scope
        if name in scope.function.globals:
            place = None
            if value.all_keys:
                self.publish(name, target, value, state, scope)
            else:
                self.empty(name, state)
        elif name in scope.function.nonlocals:
            place = state.names.holder(scope.function.parent, name) or scope
        state.names.set(place, name, value)

    def _assign_attribute(self, target: ast.Attribute, value: Value, state: State, scope: Scope) -> None:
        base = self.eval(target.value, state, scope)
        path = f"{base.path}.{target.attr}" if base.path else f"#{id(target)}"
        state.names.set(None, path, value)
        self.empty(path, state)
        if not base.path.startswith("#") and base.path:
            self.publish(path, target, value, state, scope)

    def _assign_item(self, target: ast.Subscript, value: Value, state: State, scope: Scope) -> None:
        base = self.eval(target.value, state, scope)
        self.eval(target.slice, state, scope)
        index = target.slice.value if isinstance(target.slice, ast.Constant) else None
        if base.items is not None and base.labels is None and isinstance(index, int) and 0 <= index < len(base.items):
            whole = Value(items=(*base.items[:index], value, *base.items[index + 1 :]))
        else:
            whole = (
                replace(base, items=None, labels=None, element=union(element(base), value)) if base.sequence else sequence(value)
            )
        self.put(target.value, whole, value, state, scope, target)

    def put(self, target: ast.expr, value: Value, added: Value, state: State, scope: Scope, node: ast.AST) -> None:
        match target:
            case ast.Name():
                place = state.names.holder(scope, target.id)
                if place is not None:
                    state.names.set(place, target.id, value)
                elif added.all_keys and not self.local(target.id, scope):
                    self.publish(target.id, node, added, state, scope)
            case ast.Attribute():
                base = self.eval(target.value, state, scope)
                path = f"{base.path}.{target.attr}"
                state.names.set(None, path, value)
                if base.path and not base.path.startswith("#"):
                    self.publish(path, node, added, state, scope, value)
            case ast.Subscript():
                self.put(target.value, sequence(value), added, state, scope, node)

    @abstractmethod
    def local(self, name: str, scope: Scope) -> bool:
        """Whether an unbound `name` is no variable of the module."""

    def run_Delete(self, node: ast.Delete, state: State, scope: Scope) -> State | None:
        for target in node.targets:
            if isinstance(target, ast.Attribute) and target.attr == "grad":
                self.release(target, self.eval(target.value, state, scope), state, scope)
            elif isinstance(target, ast.Attribute):
                base = self.eval(target.value, state, scope)
                self.empty(f"{base.path}.{target.attr}", state)
        return state


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target

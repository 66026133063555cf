"""Binding: names, attributes, items, and what it means to set `.grad` or `requires_grad`."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import replace

from lifetime.linter.flow.conditions import is_null
from lifetime.linter.flow.index import index
from lifetime.linter.flow.state import Cleared, State
from lifetime.linter.flow.values import Scope, Value, element, sequence, union, unpack
from lifetime.linter.flow.vocabulary import Vocabulary


class Binding(Vocabulary):
    """Assignments of every form."""

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
            if plain and len(target.elts) == len(source.elts) and value.items is not None and len(value.items) == len(target.elts):
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
        """None releases, and so does what `.grad` was before. What is computed from it does not; the unknown ends the matter."""
        owner = self.eval(target.value, state, scope)
        own = value.all_grads & owner.all_keys
        if is_null(source) or value.empty or (own and -1 < _read_at(value) < state.fills):
            self.release(target, owner, state, scope)
        elif not own:
            state.clear(filter(self.holds_gradient, owner.all_keys), Cleared.VOID)

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
        if value.empty:
            self.taken(base)
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
                    alias = (state.names.get(place, target.id) or value).path
                    state.names.set(place, target.id, replace(value, path=alias))
                    if "." in alias or alias in index(scope.module).variables:
                        self.publish(alias, node, added, state, scope, value)
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
            elif isinstance(target, ast.Subscript):
                self.taken(self.eval(target.value, state, scope))
        return state


def _read_at(value: Value) -> int:
    """When the gradients in `value` were read, the latest of them."""
    inner = [*(value.items or ()), *([value.element] if value.element else [])]
    return max([value.read_at, *map(_read_at, inner)])


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=index):
            return ast.Subscript(value, index, ast.Load())
    return target

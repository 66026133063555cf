"""Expressions: reads of `.grad`, sequences, comprehensions, arithmetic."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.conditions import Conditions, is_null
from lifetime.linter.flow.names import RUNS, last_name
from lifetime.linter.flow.state import State, after_loop
from lifetime.linter.flow.values import (
    EMPTY,
    NULL,
    SPANNING,
    Callee,
    Keys,
    Kind,
    Scope,
    Value,
    element,
    iterate,
    part,
    sequence,
    union,
    visited,
)

PASSING = {"data", "T", "mT", "real", "H"}
STATIC = {
    "shape",
    "dtype",
    "device",
    "layout",
    "ndim",
    "is_cuda",
    "requires_grad",
    "is_leaf",
    "grad_fn",
    "names",
    "is_meta",
    "itemsize",
}

PARTIAL = "#partial"
"""The path of a loop index that does not run over all elements."""


class Expressions(Conditions):
    """One method a node type: `eval_NAME`. What has none yields something unknown, after its parts were looked at."""

    def eval(self, node: ast.expr | None, state: State, scope: Scope) -> Value:
        if node is None:
            return NULL
        self.spend()
        method: Callable[[ast.expr, State, Scope], Value] | None = getattr(self, f"eval_{type(node).__name__}", None)
        return method(node, state, scope) if method else self._other(node, state, scope)

    def _other(self, node: ast.expr, state: State, scope: Scope) -> Value:
        values = [self.eval(child, state, scope) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return Value(grads=frozenset().union(*(v.all_grads for v in values)))

    def eval_Constant(self, node: ast.Constant, state: State, scope: Scope) -> Value:
        return NULL if is_null(node) else EMPTY

    def eval_Compare(self, node: ast.Compare, state: State, scope: Scope) -> Value:
        return self.eval_test(node, state, scope) if any(map(is_null, node.comparators)) else self._other(node, state, scope)

    def eval_UnaryOp(self, node: ast.UnaryOp, state: State, scope: Scope) -> Value:
        return self.eval_test(node, state, scope) if isinstance(node.op, ast.Not) else self._other(node, state, scope)

    def eval_Tuple(self, node: ast.Tuple | ast.List | ast.Set, state: State, scope: Scope) -> Value:
        values: list[Value] = []
        spread = False
        for item in node.elts:
            value = self.eval(item.value if isinstance(item, ast.Starred) else item, state, scope)
            if not isinstance(item, ast.Starred):
                values.append(value)
            elif value.items is not None:
                values.extend(value.items)
            else:
                values.append(element(value))
                spread = True
        return sequence(union(*values)) if spread else Value(items=tuple(values))

    eval_List = eval_Set = eval_Tuple

    def eval_Starred(self, node: ast.Starred, state: State, scope: Scope) -> Value:
        return element(self.eval(node.value, state, scope))

    def eval_Dict(self, node: ast.Dict, state: State, scope: Scope) -> Value:
        values, labels = [], []
        for name, item in zip(node.keys, node.values, strict=True):
            value = self.eval(item, state, scope)
            if name is not None:
                self.eval(name, state, scope)
            values.append(value if name is not None else element(value))
            labels.append(repr(name.value) if isinstance(name, ast.Constant) else "")
        if all(labels):
            return Value(items=tuple(values), labels=tuple(labels), mapping=True)
        return Value(element=union(*values), mapping=True)

    def eval_Attribute(self, node: ast.Attribute, state: State, scope: Scope) -> Value:
        base = self.eval(node.value, state, scope)
        if node.attr == "grad":
            return self.read(node, node.value, base, state, scope)
        return self.attribute(base, node, state, scope)

    def attribute(self, base: Value, node: ast.Attribute, state: State, scope: Scope) -> Value:
        """The value of attribute `node.attr`: what was stored there, or something unknown with a name."""
        if node.attr in STATIC:
            return Value(keys=base.keys) if node.attr in {"requires_grad", "is_leaf"} else EMPTY
        path = f"{base.path}.{node.attr}" if base.path else f"#{id(node)}"
        stored = state.names.get(None, path)
        if stored is not None:
            return stored
        if base.items is not None and base.labels is not None and node.attr in base.labels:
            return base.items[base.labels.index(node.attr)]
        if node.attr in PASSING and base.keys and not _is_object(base):
            return Value(keys=frozenset({self.key(Kind.UNKNOWN, node, state)}), path=path)
        computed = self.computed(base, node, state, scope)
        if computed is None and node.attr in RUNS:
            return Value(path=path, runs=base.all_keys)
        return self.place(path, node, state, scope) if computed is None else computed

    @abstractmethod
    def computed(self, base: Value, node: ast.Attribute, state: State, scope: Scope) -> Value | None:
        """What a property yields; None when the attribute is none."""

    def place(self, path: str, node: ast.Attribute, state: State, scope: Scope) -> Value:
        """What lies under `path` when this walk has not stored it: the same each time. Overridden where fields are known."""
        where = path, () if path.startswith("#") else self.context
        key = self.placed.setdefault(where, self.key(Kind.UNKNOWN, node, state, path))
        return Value(keys=frozenset({key}), path=path)

    def eval_Subscript(self, node: ast.Subscript, state: State, scope: Scope) -> Value:
        base = self.eval(node.value, state, scope)
        index = node.slice
        if isinstance(index, ast.Slice):
            return self._slice(base, index, state, scope)
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            index = ast.Constant(value=-index.operand.value) if isinstance(index.operand.value, int) else index
        if isinstance(index, ast.Constant):
            return _constant(base, index.value)
        path = self.eval(index, state, scope).path
        if path == PARTIAL or path.startswith(SPANNING):
            return part(base, f"[{ast.unparse(index) if path == PARTIAL else path}]")
        inner = element(base)
        return replace(inner, path=f"{base.path}[]") if base.path and not inner.path and not base.sequence else inner

    def _slice(self, base: Value, index: ast.Slice, state: State, scope: Scope) -> Value:
        for bound in (index.lower, index.upper):
            self.eval(bound, state, scope)
        if index.lower is None and index.upper is None:
            return base
        if base.items is not None and index.step is None and _is_fixed(index.lower) and _is_fixed(index.upper):
            return Value(items=base.items[slice(_fixed(index.lower), _fixed(index.upper))])
        if isinstance(index.lower, ast.Constant) and index.lower.value == 0 and index.upper is None:
            return base
        return sequence(part(element(base), f"[{ast.unparse(index)}]"))

    def eval_BinOp(self, node: ast.BinOp, state: State, scope: Scope) -> Value:
        left, right = self.eval(node.left, state, scope), self.eval(node.right, state, scope)
        return self.combine(node, left, right, state)

    def combine(self, node: ast.BinOp | ast.AugAssign, left: Value, right: Value, state: State) -> Value:
        """`+` of sequences holds both; arithmetic makes a new tensor."""
        if isinstance(node.op, (ast.Add, ast.BitOr)) and (left.sequence or right.sequence):
            if left.items is not None and right.items is not None and left.labels is right.labels is None:
                return Value(items=left.items + right.items)
            return sequence(union(element(left), element(right)))
        if isinstance(node.op, ast.Mult) and left.sequence:
            return sequence(element(left))
        return replace(self.fresh(Kind.UNKNOWN, node, state), grads=left.all_grads | right.all_grads)

    def eval_NamedExpr(self, node: ast.NamedExpr, state: State, scope: Scope) -> Value:
        value = self.eval(node.value, state, scope)
        self.assign(node.target, value, state, scope.function)
        return value

    def eval_Lambda(self, node: ast.Lambda, state: State, scope: Scope) -> Value:
        return Value(callee=Callee(node, scope.module, scope, scope.owner))

    def eval_Await(self, node: ast.Await, state: State, scope: Scope) -> Value:
        return self.eval(node.value, state, scope)

    def eval_JoinedStr(self, node: ast.JoinedStr, state: State, scope: Scope) -> Value:
        self._other(node, state, scope)
        return EMPTY

    def eval_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, state: State, scope: Scope) -> Value:
        return sequence(self._comprehension(node.generators, node.elt, state, Scope(scope.module, scope, scope.owner, inline=True)))

    eval_SetComp = eval_GeneratorExp = eval_ListComp

    def eval_DictComp(self, node: ast.DictComp, state: State, scope: Scope) -> Value:
        inner = Scope(scope.module, scope, scope.owner, inline=True)
        return Value(element=self._comprehension(node.generators, node.value, state, inner), mapping=True)

    def _comprehension(self, generators: list[ast.comprehension], elt: ast.expr, state: State, scope: Scope) -> Value:
        if not generators:
            return self.eval(elt, state, scope)
        first, rest = generators[0], generators[1:]
        inner = iterate(self.eval(first.iter, state, scope))

        def body(round: State) -> Value:
            self.assign(first.target, inner, round, scope)
            narrowed = inner
            for condition in first.ifs:
                proved = self.prove(condition, round, scope)
                if not self.selects(lambda _, proved=proved: proved, inner, round):  # type: ignore[misc]
                    narrowed = part(narrowed, f"?{ast.unparse(condition)}")
                round.assume(self.kept(proved.true))
            if narrowed is not inner:
                self.assign(first.target, narrowed, round, scope)
            return self._comprehension(rest, elt, round, scope)

        return self.each(visited(inner), state, body)

    def each(self, visited: Keys, state: State, body: Callable[[State], Value]) -> Value:
        """Run `body` as the body of a loop that visits all of `visited`."""
        before = state.copy()
        round = state.copy()
        value = body(round)
        round.capturing = before.capturing
        state.become(after_loop(before, [round], [], visited))
        return value


def _is_object(value: Value) -> bool:
    """What a class was called for: its `data` is an attribute like any other."""
    made = [k.origin.node for k in value.keys]
    return all(isinstance(n, ast.Call) and last_name(n.func)[:1].isupper() and last_name(n.func) != "Variable" for n in made)


def _is_fixed(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and isinstance(node.value, int))


def _fixed(node: ast.expr | None) -> int | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _constant(base: Value, index: object) -> Value:
    if base.items is not None and base.labels is not None:
        found = [v for v, label in zip(base.items, base.labels, strict=True) if label == repr(index)]
        return found[0] if found else EMPTY
    if base.items is not None and isinstance(index, int) and -len(base.items) <= index < len(base.items):
        return base.items[index]
    return part(base, f"[{index!r}]")

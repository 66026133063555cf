"""What a condition proves about leaves (nothing to release there) and about capture."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.machine import Machine
from lifetime.linter.flow.names import CAPTURE, last_name
from lifetime.linter.flow.state import State, choice, join
from lifetime.linter.flow.values import EMPTY, NOTHING, Branches, Facts, Scope, Value

TENSOR_TESTS = {"is_tensor", "is_floating_point", "is_complex", "is_differentiable", "isTensor"}
TENSOR_FLAGS = {"requires_grad", "is_leaf", "retains_grad"}


def is_null(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class Conditions(Machine):
    """Conditions are evaluated once, for their effects (a walrus, a read) and for what they prove."""

    def branch(self, node: ast.expr, state: State, scope: Scope) -> tuple[State, State]:
        """The states in which `node` holds and in which it does not."""
        if not isinstance(node, ast.BoolOp):
            return self.split(node, self.prove(node, state, scope), state)
        conjunction = isinstance(node.op, ast.And)
        running, decided = state, list[State]()
        for operand in node.values:
            yes, no = self.branch(operand, running, scope)
            running, other = (yes, no) if conjunction else (no, yes)
            decided.append(other)
        # Each way to decide it is a path: one may be under a capture, another have nothing to release.
        joined = join(decided) or running.copy()
        text, _ = self.plain(node)
        running.suppose(text, conjunction)
        joined.suppose(text, not conjunction)
        return (running, joined) if conjunction else (joined, running)

    def split(self, node: ast.expr, proved: Branches, state: State) -> tuple[State, State]:
        yes, no = state.copy(), state.copy()
        yes.assume(self.kept(proved.true))
        no.assume(self.kept(proved.false))
        text, holds = self.plain(node)
        yes.suppose(text, holds)
        no.suppose(text, not holds)
        return yes, no

    def kept(self, facts: Facts) -> Facts:
        """`facts` about what can hold a gradient at all."""
        return replace(facts, void=frozenset(filter(self.holds_gradient, facts.void))) if facts.void else facts

    def plain(self, node: ast.expr) -> tuple[str, bool]:
        """The text of a condition without `not`, and whether it stands as it is."""
        holds = True
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node, holds = node.operand, not holds
        if node not in self.texts:
            self.texts[node] = ast.unparse(node)
        return self.texts[node], holds

    def prove(self, node: ast.expr, state: State, scope: Scope) -> Branches:
        """Evaluate `node` as a condition."""
        match node:
            case ast.UnaryOp(op=ast.Not()):
                return self.prove(node.operand, state, scope).inverted()
            case ast.BoolOp():
                return self._several(node, state, scope)
            case ast.Compare(ops=[op], comparators=[right]) if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and is_null(
                right
            ):
                void = Facts(self.bare(node.left, state, scope).void)
                found = Branches(void, NOTHING)
                return found if isinstance(op, (ast.Is, ast.Eq)) else found.inverted()
            case ast.Compare(
                left=ast.Call(func=ast.Name(id="len"), args=[counted]), ops=[op], comparators=[ast.Constant(value=number)]
            ):
                void = Facts(self.eval(counted, state, scope).all_keys)
                return _count(op, number, void)
            case ast.Call():
                return self._called(node, state, scope)
            case ast.Constant():
                return NOTHING_PROVED
        return self._truth(node, self.eval(node, state, scope))

    def bare(self, node: ast.expr, state: State, scope: Scope) -> Facts:
        """What follows when `node` is None. `.grad` in a bare test is no harvest."""
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            value = self.eval(node.value, state, scope)
            self.events.reads.setdefault(node, value.all_keys)
            self.events.home[node] = scope.module
            return Facts(value.all_keys)
        if isinstance(node, ast.Call) and last_name(node.func) == "getattr" and len(node.args) > 1 and is_grad(node.args[1]):
            return Facts(self.eval(node.args[0], state, scope).all_keys)
        value = self.eval(node, state, scope)
        return Facts(value.all_keys | value.all_grads)

    def _several(self, node: ast.BoolOp, state: State, scope: Scope) -> Branches:
        conjunction = isinstance(node.op, ast.And)
        found: Branches | None = None
        running = state
        skipped: list[State] = []
        for operand in node.values:
            proved = self.prove(operand, running, scope)
            if found is None:
                found = proved
            elif conjunction:
                found = Branches(found.true.both(proved.true), found.false.either(proved.false))
            else:
                found = Branches(found.true.either(proved.true), found.false.both(proved.false))
            yes, no = self.split(operand, proved, running)
            running, other = (yes, no) if conjunction else (no, yes)
            skipped.append(other)
        self._rejoin(state, running, skipped)
        return found or NOTHING_PROVED

    def _rejoin(self, state: State, last: State, skipped: list[State]) -> None:
        """Only the effects of the operands count here; what they prove is in the result."""
        state.names = last.names.copy()
        for other in (last, *skipped):
            state.pending |= frozenset(h for h in other.pending if h not in state.pending)
            state.born |= other.born
            state.fills = max(state.fills, other.fills)

    def _called(self, node: ast.Call, state: State, scope: Scope) -> Branches:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in {"isinstance", "hasattr", "issubclass"} and len(node.args) == 2:
            about = self.eval(node.args[0], state, scope)
            kind = ast.unparse(node.args[1])
            return (
                Branches(NOTHING, Facts(about.all_keys))
                if "Tensor" in kind or "grad" in kind or "Variable" in kind
                else NOTHING_PROVED
            )
        if name in TENSOR_TESTS:
            about = self.eval(node.args[0] if node.args else owner, state, scope)
            return Branches(NOTHING, Facts(about.all_keys))
        if name == "len" and len(node.args) == 1:
            return Branches(NOTHING, Facts(self.eval(node.args[0], state, scope).all_keys))
        if name == "bool" and len(node.args) == 1:
            return self.prove(node.args[0], state, scope)
        if name == "is_available":
            return Branches(NOTHING, Facts(capturing=False))
        value = self.eval(node, state, scope)
        if CAPTURE.search(name):
            return Branches(Facts(capturing=True), Facts(capturing=False))
        return value.test or NOTHING_PROVED

    def _truth(self, node: ast.expr, value: Value) -> Branches:
        if value.test is not None:
            return value.test
        if isinstance(node, ast.Attribute) and node.attr in TENSOR_FLAGS:
            return Branches(NOTHING, Facts(value.all_keys))
        if isinstance(node, (ast.Name, ast.Attribute)) and CAPTURE.search(last_name(node)):
            return Branches(Facts(capturing=True), Facts(capturing=False))
        if isinstance(node, (ast.Name, ast.NamedExpr)):
            return Branches(NOTHING, Facts(value.all_keys | value.all_grads))
        return NOTHING_PROVED

    def eval_test(self, node: ast.expr, state: State, scope: Scope) -> Value:
        """A condition as a value: what it proves goes with it."""
        return Value(test=self.prove(node, state, scope))

    def eval_BoolOp(self, node: ast.BoolOp, state: State, scope: Scope) -> Value:
        """`a or b` yields one of its operands."""
        if all(isinstance(v, (ast.Compare, ast.UnaryOp, ast.Call)) for v in node.values):
            return self.eval_test(node, state, scope)
        found, running = EMPTY, state
        for operand in node.values:
            value = self.eval(operand, running, scope)
            found = choice(found, value, running.born, running.born) if found != EMPTY else value
        return found

    def eval_IfExp(self, node: ast.IfExp, state: State, scope: Scope) -> Value:
        yes, no = self.branch(node.test, state, scope)
        first, second = self.eval(node.body, yes, scope), self.eval(node.orelse, no, scope)
        joined = join([yes, no]) or yes
        joined.capturing = state.capturing
        state.become(joined)
        return choice(first, second, yes.born, no.born)

    def selects(self, condition: Callable[[State], Branches], inner: Value, state: State) -> bool:
        """Whether a filter leaves out only what has no gradient to release."""
        proved = condition(state)
        leaves = {k for k in inner.all_keys if self.is_leaf(k)}
        return leaves <= proved.false.void or proved.true.capturing is False


NOTHING_PROVED = Branches()


def is_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "grad"


def _count(op: ast.cmpop, number: object, void: Facts) -> Branches:
    if (isinstance(op, ast.Eq) and number == 0) or (isinstance(op, ast.Lt) and number == 1):
        return Branches(void, NOTHING)
    if (isinstance(op, (ast.Gt, ast.NotEq)) and number == 0) or (isinstance(op, ast.GtE) and number == 1):
        return Branches(NOTHING, void)
    return NOTHING_PROVED

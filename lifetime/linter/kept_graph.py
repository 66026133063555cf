"""Whether an accumulation certainly keeps graphs that nobody wants."""

from __future__ import annotations

import ast
from functools import cached_property

from lifetime.linter.accumulation import Accumulation
from lifetime.linter.execute import Execution
from lifetime.linter.graph_proof import Proof
from lifetime.linter.module import Module
from lifetime.linter.sight import Sight
from lifetime.linter.state import Did
from lifetime.linter.values import Answer, How, Value


class Kept:
    def __init__(self, module: Module, sight: Sight, run: Execution, proof: Proof, one: Accumulation) -> None:
        self.module = module
        self.sight = sight
        self.run = run
        self.proof = proof
        self.one = one

    def is_certain(self) -> bool:
        """Each turn adds a graph, and the accumulated value is never back-propagated.

        Where the loop back-propagates what it adds, the graph is used up, whoever gets the sum. Where it does not, the sum
        must stay in this function, and nothing in the file may say that the function runs without recording.
        """
        added = self.run.results.get(self.one.added, [])
        totals = set(self.totals)
        if not added or not self.lasts() or totals & self.proof.fed or self.is_bounded():
            return False
        if self.is_used_up(added):
            return any(self.proof.carries(v) for v in added)
        seen = all(self.proof.carries(v) or self.is_detached_later(v) for v in added)
        return seen and not self.is_handed_on() and self.sight.records(self.module.enclosing_function(self.one.node))

    def carries(self, others: set[int]) -> bool:
        """Whether what is added has a graph that no other accumulation brings along: one leak is one finding."""
        added = self.run.results.get(self.one.added, [])
        return any(self.proof.carries(v, others) or self.is_detached_later(v) for v in added)

    def carries_at(self, node: ast.expr) -> bool:
        return any(self.proof.carries(v) or self.is_detached_later(v) for v in self.run.results.get(node, ()))

    @cached_property
    def in_order(self) -> list[Value]:
        """The accumulated value, once for each turn walked; nothing where adding was not recorded."""
        node = self.one.node
        places = {node, *(node.targets if isinstance(node, ast.Assign) else ())}
        put = [e.values[0] for e in self.run.events if e.did is Did.PUT and e.node in places]
        key: ast.AST = self.one.total or (node.value if isinstance(node, ast.Assign) else node)
        summed = [v for v in self.run.results.get(key, ()) if v.graph is not Answer.NO]
        whole = _whole(node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else node)
        if whole is not None and (put or summed):
            return self.run.results.get(whole, [])
        return put or summed

    @cached_property
    def totals(self) -> dict[int, Value]:
        return {v.own: v for v in self.in_order}

    def lasts(self) -> bool:
        """Whether a turn of the loop finds the last turn's total in its own (nothing is said of a loop that was walked once)."""
        inherited: set[int] = set()
        for total in self.in_order:
            if inherited & self.run.ancestry.behind(total).keys():
                return True
            inherited.add(total.own)
        return len(self.in_order) == 1

    def is_used_up(self, added: list[Value]) -> bool:
        """Whether the loop back-propagates the graph of what it adds, and lets it be freed."""
        roots, behind = self.proof.used_up(self.one.loop)
        parts = [part for v in added for part in self.run.ancestry.flat(v)]
        return any(v.own in behind or not roots.isdisjoint(self.run.ancestry.behind(v, sure=True)) for v in parts)

    def is_handed_on(self) -> bool:
        """Whether somebody outside of this function gets the accumulated value with its graph."""
        given = any(self.run.ancestry.origins[own].how in (How.GIVEN, How.PART, How.ITEM) for own in self.totals)
        return given or "." in self.one.target or not self.totals.keys().isdisjoint(self.proof.handed)

    def is_detached_later(self, value: Value) -> bool:
        """Whether `value` is a forward's result and the author detaches what it is collected in: so it carries a graph."""
        forward = self.run.ancestry.origin(value).how is How.FORWARD and value.graph is not Answer.NO
        return forward and not self.totals.keys().isdisjoint(self.proof.detached)

    def is_bounded(self) -> bool:
        """A deque with a length lets go by itself."""
        nodes = [self.run.ancestry.origins[own].node for own in self.totals]
        return any(isinstance(n, ast.Call) and any(k.arg == "maxlen" for k in n.keywords) for n in nodes)


def _whole(node: ast.AST) -> ast.expr | None:
    """What `x[...]`, or the left side of `x[...] += y`, is a part of."""
    part = node.target if isinstance(node, ast.AugAssign) else node
    if not isinstance(part, ast.Subscript):
        return None
    while isinstance(part, ast.Subscript):
        part = part.value
    return part

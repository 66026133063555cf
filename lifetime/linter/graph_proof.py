"""Which values certainly carry a graph, and where the graphs of one function go."""

from __future__ import annotations

import ast
from functools import cached_property

from lifetime.linter.accumulation import AnyLoop
from lifetime.linter.backward_calls import flag
from lifetime.linter.execute import Execution
from lifetime.linter.retention import is_loss
from lifetime.linter.state import Did
from lifetime.linter.values import SURE, Answer, How, Kind, Value

MADE = (How.OPERATION, How.FORWARD, How.CALL, How.JOIN, How.PART)
OUTWARD = (Did.RETURN, Did.YIELD, Did.STORE, Did.ARGUMENT, Did.CAPTURE)
NOTHING: set[int] = set()
BACKWARD_NAMES = {"backward", "manual_backward"}


class Proof:
    """Says of the values of one walk whether they certainly carry a graph: what is back-propagated does, and so does what
    it was computed from and what is computed of it."""

    def __init__(self, run: Execution) -> None:
        self.run = run
        self.proved: set[int] = set()
        self.freed: dict[AnyLoop, tuple[set[int], set[int]]] = {}
        for event in run.events:
            name = getattr(getattr(event.node, "func", None), "attr", "")
            if event.did is Did.BACKWARD and name in BACKWARD_NAMES:
                self.prove([v for v in event.values if self.is_made(v)])
            elif event.did is Did.SPENT:
                self.proved.add(event.values[0].own)

    def is_made(self, value: Value) -> bool:
        return value.kind in (Kind.TENSOR, Kind.OPAQUE) and self.run.ancestry.origin(value).how in MADE

    def prove(self, candidates: list[Value]) -> None:
        """One of `candidates` carries a graph. Where there is only one, it is that one, and what made it is next; where all come
        from one source, the source does."""
        sources = self.sources(candidates)
        if len(sources) == 1:
            self.proved |= sources
        while len(candidates) == 1 and candidates[0].own not in self.proved - sources:
            self.proved.add(candidates[0].own)
            made = self.run.ancestry.origin(candidates[0])
            candidates = [v for v in made.parents if self.is_made(v)] if made.how is not How.PART else []

    def sources(self, values: list[Value]) -> set[int]:
        """What stands at the beginning of all that `values` were computed from."""
        found, seen, stack = set[int](), set[int](), list(values)
        while stack:
            one = stack.pop()
            if one.own in seen:
                continue
            seen.add(one.own)
            made = self.run.ancestry.origin(one)
            parents = [v for v in made.parents if self.is_made(v)] if made.how is not How.PART else []
            stack.extend(parents)
            if not parents:
                found.add(one.own)
        return found

    def carries(self, value: Value, without: set[int] = NOTHING) -> bool:
        """Whether `value`, or something in the container that it is, certainly carries a graph, and not only through `without`.

        A leaf by itself carries none; what is computed of it does.
        """
        stack, seen = [(value, False)], set(without)
        while stack:
            one, is_operand = stack.pop()
            if one.own in seen or one.kind in (Kind.PLAIN, Kind.NONE):
                continue
            seen.add(one.own)
            origin = self.run.ancestry.origin(one)
            made = origin.how in SURE or (origin.how is How.FORWARD and is_loss(origin.node))
            if (one.leaf and is_operand) or one.own in self.proved or (one.graph is Answer.YES and not made):
                return True
            if made:
                stack.extend((v, is_operand or origin.how is How.OPERATION) for v in origin.parents)
        return False

    def behind_all(self, dids: tuple[Did, ...]) -> set[int]:
        values = [v for event in self.run.events if event.did in dids for v in event.values]
        return set(self.run.ancestry.behind(*values))

    @cached_property
    def fed(self) -> set[int]:
        """Everything that some backward may go through."""
        return self.behind_all((Did.BACKWARD,))

    @cached_property
    def handed(self) -> set[int]:
        """Everything that somebody outside of the function may get with its graph."""
        return self.behind_all(OUTWARD)

    @cached_property
    def detached(self) -> set[int]:
        """Everything behind a value that the author detaches."""
        found: list[Value] = []
        for node in self.run.results:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
                found.extend(self.run.results.get(node.func.value, ()))
        return set(self.run.ancestry.behind(*found))

    def used_up(self, loop: AnyLoop) -> tuple[set[int], set[int]]:
        """What the backwards inside `loop` that keep no graph go out from, and all that lies behind: used up in each turn."""
        if loop not in self.freed:
            ran = [e for e in self.run.events if e.did in (Did.BACKWARD, Did.SPENT)]
            once = [e for e in ran if isinstance(e.node, ast.Call) and _inside(e.node, loop) and not _keeps(e.node)]
            roots = [v for e in once for v in e.values if v.own in self.proved]
            self.freed[loop] = {v.own for v in roots}, set(self.run.ancestry.behind(*roots))
        return self.freed[loop]


def _inside(call: ast.Call, loop: AnyLoop) -> bool:
    return loop.lineno <= call.lineno <= (loop.end_lineno or loop.lineno)


def _keeps(call: ast.Call) -> bool:
    return any(k.arg in {"retain_graph", "create_graph"} and flag(call, k.arg) is not False for k in call.keywords)

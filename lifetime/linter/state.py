"""What is known at one point of a function while it is walked, and what happened so far."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from lifetime.linter.imports import Imports
from lifetime.linter.values import Ancestry, Answer, How, Kind, Value

Env = dict[str, Value]


class Did(Enum):
    BACKWARD = "backward"
    """`values` are back-propagated."""
    SPENT = "spent"
    """A function of this file made the value, back-propagated it and returned it with its graph."""
    RETURN = "return"
    YIELD = "yield"
    STORE = "store"
    """The value goes to an attribute, a global or something that is not of this function's making."""
    PUT = "put"
    """`values` are a container and what was put into it."""
    ARGUMENT = "argument"
    """The value is handed to a callee that nobody knows."""
    CAPTURE = "capture"
    """A nested function refers to the value."""


@dataclass(frozen=True)
class Event:
    did: Did
    node: ast.AST
    values: tuple[Value, ...]


class State:
    """Names of one function and their values. A dotted chain of names is a name too."""

    def __init__(self, imports: Imports, modules: set[str], methods: set[str], is_spent: Callable[[ast.expr], bool]) -> None:
        self.imports = imports
        self.is_spent = is_spent
        self.modules = modules
        self.methods = methods
        self.ancestry = Ancestry()
        self.env: Env = {}
        self.exits: list[Env] = []
        self.grad = Answer.YES
        self.events: list[Event] = []
        self.results: dict[ast.AST, list[Value]] = defaultdict(list)
        self.dependents: dict[str, set[str]] = defaultdict(set)
        self.shared: set[str] = set()
        """Names declared global or nonlocal."""

    def happened(self, did: Did, node: ast.AST, *values: Value) -> None:
        self.events.append(Event(did, node, values))

    def bind(self, name: str, value: Value) -> None:
        """`name` refers to `value` from here on; what was known of `name.attribute` is forgotten."""
        for other in self.dependents.pop(name, ()):
            self.env.pop(other, None)
        parts = name.split(".")
        for k in range(1, len(parts)):
            self.dependents[".".join(parts[:k])].add(name)
        self.env[name] = value

    def plain(self, node: ast.AST | None = None) -> Value:
        return self.ancestry.new(Kind.PLAIN, Answer.NO, How.FRESH, node)

    def fresh(self, node: ast.AST, leaf: bool = False) -> Value:
        return self.ancestry.new(Kind.TENSOR, Answer.NO, How.FRESH, node, leaf=leaf)

    def given(self, node: ast.AST | None, kind: Kind = Kind.OPAQUE) -> Value:
        graph = Answer.UNKNOWN if kind in (Kind.OPAQUE, Kind.TENSOR) else Answer.NO
        return self.ancestry.new(kind, graph, How.GIVEN, node)

    def container(self, node: ast.AST | None, items: list[Value]) -> Value:
        return self.ancestry.new(Kind.CONTAINER, Answer.UNKNOWN, How.CONTAINER, node, items)

    def tuple(self, items: list[Value]) -> Value:
        """A tuple that unpacks into just these items."""
        return self.container(ast.Tuple(elts=[ast.Constant(value=None)] * len(items), ctx=ast.Load()), items)

    def recorded(self, operands: list[Value]) -> Answer:
        """Whether an operation on `operands` leaves a graph behind."""
        flat = [v for operand in operands for v in self.ancestry.flat(operand)]
        if self.grad is Answer.NO:
            return Answer.NO
        graph = Answer.YES if any(v.leaf for v in flat) else max((v.graph for v in flat), default=Answer.NO)
        return min(graph, self.grad)

    def operation(self, node: ast.AST, operands: list[Value]) -> Value:
        """The result of an operation that autograd records if any operand wants it to."""
        tensor = max((self.ancestry.holds(v) for v in operands), default=Answer.NO)
        if tensor is Answer.NO:
            return self.plain(node)
        kind = Kind.TENSOR if tensor is Answer.YES else Kind.OPAQUE
        graph = self.recorded(operands)
        if graph is Answer.NO:
            return self.ancestry.new(kind, graph, How.FRESH, node)
        return self.ancestry.new(kind, graph, How.OPERATION, node, operands)

    def derived(
        self, node: ast.AST, how: How, operands: list[Value], kind: Kind = Kind.OPAQUE, graph: Answer = Answer.UNKNOWN
    ) -> Value:
        """The result of something that may or may not hang on `operands`."""
        graph = min(graph, self.grad)
        return self.ancestry.new(kind, graph, how, node, operands if graph is not Answer.NO else ())

    def join(self, values: list[Value]) -> Value:
        """One value that stands for whichever of `values` it turns out to be; None gives way."""
        distinct = list({v.own: v for v in values if v.kind is not Kind.NONE}.values())
        if not distinct:
            return values[0]
        if len(distinct) == 1:
            return distinct[0]
        kinds = {v.kind for v in distinct}
        graphs = {v.graph for v in distinct}
        kind = kinds.pop() if len(kinds) == 1 else Kind.OPAQUE
        graph = graphs.pop() if len(graphs) == 1 else Answer.UNKNOWN
        return self.ancestry.new(kind, graph, How.JOIN, None, distinct, all(v.leaf for v in distinct))

    def merge(self, envs: list[Env]) -> Env:
        """The names as they may be after any of several ways; what only some ways know stays known."""
        if len(envs) == 1:
            return envs[0]
        merged = dict(envs[0])
        differing: dict[str, None] = {}
        for env in envs[1:]:
            for name, value in env.items():
                if merged.setdefault(name, value) is not value:
                    differing[name] = None
        for name in differing:
            merged[name] = self.join([env[name] for env in envs if name in env])
        return merged

"""What the rules know of a value: is it a tensor, does it carry a graph, and from which other values was it computed."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Answer(IntEnum):
    NO = 0
    UNKNOWN = 1
    YES = 2


class Kind(Enum):
    PLAIN = "plain"
    """A number, a shape, a string, a function: nothing that autograd knows."""
    NONE = "none"
    TENSOR = "tensor"
    NODE = "node"
    """A `grad_fn`; it shares its identity with the tensor it made."""
    MODULE = "module"
    CONTAINER = "container"
    OPAQUE = "opaque"


class How(Enum):
    """How a value came to be."""

    OPERATION = "operation"
    """Autograd records it: whoever holds the result holds the graph of its operands."""
    FORWARD = "forward"
    """A callable that looks like a module or a loss was called."""
    CALL = "call"
    """Some other call; whether the result hangs on the arguments is unknown."""
    PART = "part"
    """An attribute or item of another value."""
    JOIN = "join"
    CONTAINER = "container"
    GIVEN = "given"
    """A parameter, a free variable or an attribute that this function did not fill."""
    ITEM = "item"
    """What a loop draws from something this function did not make."""
    FRESH = "fresh"
    """A constant, a factory's result, a detached tensor: nothing stands behind it."""


@dataclass(frozen=True)
class Value:
    """`own` is the identity: two names of one object share it. `leaf` is a tensor that asks for a gradient and has no history."""

    kind: Kind
    graph: Answer
    own: int
    leaf: bool = False

    @property
    def tensor(self) -> Answer:
        if self.kind is Kind.TENSOR:
            return Answer.YES
        return Answer.UNKNOWN if self.kind in (Kind.OPAQUE, Kind.CONTAINER) else Answer.NO


@dataclass
class Origin:
    node: ast.AST | None
    how: How
    parents: list[Value] = field(default_factory=list)


SURE = (How.OPERATION, How.JOIN, How.CONTAINER)
"""A tuple, because the hash of an enum's member is slow Python."""


class Ancestry:
    """All values of one function: where each came from, what containers hold."""

    def __init__(self) -> None:
        self.origins: list[Origin] = []
        self.tensors: set[int] = set()
        """What was used as only a tensor can be, wherever it came from."""

    def new(
        self,
        kind: Kind,
        graph: Answer,
        how: How,
        node: ast.AST | None = None,
        parents: Iterable[Value] = (),
        leaf: bool = False,
    ) -> Value:
        self.origins.append(Origin(node, how, list(parents)))
        return Value(kind, graph, len(self.origins) - 1, leaf)

    def origin(self, value: Value) -> Origin:
        return self.origins[value.own]

    def contents(self, value: Value) -> list[Value]:
        return self.origin(value).parents if value.kind is Kind.CONTAINER else []

    def behind(self, *values: Value, sure: bool = False, forward: bool = False) -> dict[int, Value]:
        """`values` and all they may have been computed from, by identity; with `sure`, only what they certainly hang on, with
        `forward`, a module's result on what it was given too."""
        found: dict[int, Value] = {}
        stack = list(values)
        while stack:
            value = stack.pop()
            if value.own in found or value.kind in (Kind.PLAIN, Kind.NONE):
                continue
            found[value.own] = value
            origin = self.origin(value)
            module = origin.how is How.FORWARD and (forward or value.graph is Answer.YES)
            if not sure or module or origin.how in SURE:
                stack.extend(origin.parents)
        return found

    def ahead(self, owns: set[int]) -> set[int]:
        """`owns` and everything that may have been computed from them: `behind`, seen from the other end."""
        children: dict[int, list[int]] = defaultdict(list)
        for own, origin in enumerate(self.origins):
            for parent in origin.parents:
                children[parent.own].append(own)
        found = set(owns)
        stack = list(owns)
        while stack:
            for child in children[stack.pop()]:
                if child not in found:
                    found.add(child)
                    stack.append(child)
        return found

    def holds(self, value: Value) -> Answer:
        """Whether `value` is a tensor or a container in which one was put."""
        return max((Answer.YES if v.own in self.tensors else v.tensor for v in self.flat(value)), default=Answer.NO)

    def flat(self, value: Value) -> Iterator[Value]:
        """`value` itself, or what the container holds at any depth."""
        seen: set[int] = set()
        stack = [value]
        while stack:
            one = stack.pop()
            if one.kind is not Kind.CONTAINER:
                yield one
            elif one.own not in seen:
                seen.add(one.own)
                stack.extend(self.contents(one))

"""Where a name is looked up: one scope for every call that is followed, comprehensions included."""

from __future__ import annotations

from dataclasses import dataclass, field

from lifetime.linter.flow.values import ClassRef
from lifetime.linter.module import Module


@dataclass(eq=False)
class Scope:
    """`function` is the scope that assignments in a comprehension's walrus go to; `outer` names are declared global or nonlocal."""

    module: Module
    parent: Scope | None = None
    owner: ClassRef | None = None
    inline: bool = False
    """A comprehension: it has names of its own, but its walrus and its returns belong to the parent."""
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    receiver: str = ""
    """The first parameter of a method (`self`, `ctx`)."""

    @property
    def function(self) -> Scope:
        return self.parent.function if self.inline and self.parent else self

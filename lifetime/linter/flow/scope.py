"""The values of names, scope by scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lifetime.linter.flow.values import Scope, Value


@dataclass
class Names:
    """The values of names, scope by scope. A copy shares its tables until one side writes; tables that are shared need no
    merge."""

    tables: dict[Scope | None, dict[str, Value]] = field(default_factory=dict)
    own: set[Scope | None] = field(default_factory=set)

    def copy(self) -> Names:
        self.own = set()
        return Names(dict(self.tables))

    def get(self, scope: Scope | None, name: str) -> Value | None:
        table = self.tables.get(scope)
        return table.get(name) if table is not None else None

    def set(self, scope: Scope | None, name: str, value: Value) -> None:
        if scope not in self.own:
            self.tables[scope] = dict(self.tables.get(scope, ()))
            self.own.add(scope)
        self.tables[scope][name] = value

    def holder(self, scope: Scope | None, name: str) -> Scope | None:
        """The innermost scope from `scope` outwards that has bound `name`."""
        while scope is not None and name not in self.tables.get(scope, ()):
            scope = scope.parent
        return scope

    def forget(self, scope: Scope) -> None:
        self.tables.pop(scope, None)

    def merge(self, other: Names, choose: Callable[[Value, Value], Value]) -> None:
        for scope, table in other.tables.items():
            mine = self.tables.get(scope)
            if mine is None:
                self.tables[scope] = table
            elif mine is not table:
                for name, value in table.items():
                    before = mine.get(name)
                    if before is not value and before != value:
                        self.set(scope, name, value if before is None else choose(before, value))
                        mine = self.tables[scope]

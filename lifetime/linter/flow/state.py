"""What has happened on the way to one point of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from lifetime.linter.flow.scope import Names
from lifetime.linter.flow.values import NONE, Facts, Key, Keys, Kind, Value, union

Assumption = tuple[str, bool]


class Cleared(Enum):
    """RELEASED: `.grad` was set to None. VOID: there was nothing to release (None, not a tensor)."""

    RELEASED = "released"
    VOID = "void"


@dataclass(frozen=True)
class Harvest:
    """A `.grad` read that no release has followed yet. `when` are the conditions that held at the read."""

    node: ast.AST
    keys: Keys
    weak: bool = False
    when: frozenset[Assumption] = frozenset()


@dataclass(frozen=True)
class Publication:
    """A place outside the function that got a leaf and was not emptied yet."""

    path: str
    node: ast.AST
    keys: Keys


@dataclass
class State:
    """One path, or the union of several: what may be pending is united, what must be cleared is intersected."""

    names: Names = field(default_factory=Names)
    pending: frozenset[Harvest] = frozenset()
    cleared: dict[Key, Cleared] = field(default_factory=dict)
    published: frozenset[Publication] = frozenset()
    born: Keys = NONE
    fills: int = 0
    """How often a backward has filled `.grad`, on the path where that was most often."""
    capturing: bool | None = None
    assumed: frozenset[Assumption] = frozenset()
    dead: bool = False
    """No run comes here: a guard that was decided is decided otherwise."""

    def copy(self) -> State:
        # Spelled out: this runs at every branch, and `replace` costs ten times as much.
        return State(
            self.names.copy(),
            self.pending,
            dict(self.cleared),
            self.published,
            self.born,
            self.fills,
            self.capturing,
            self.assumed,
            self.dead,
        )

    def become(self, other: State) -> None:
        self.__dict__.update(other.__dict__)

    def status(self, key: Key) -> Cleared | None:
        if not self.cleared:
            return None
        return next((self.cleared[k] for k in key.wider() if k in self.cleared), None)

    def clear(self, keys: Iterable[Key], how: Cleared) -> None:
        """`keys` hold no gradient from here on; what was pending for them is settled."""
        for key in keys:
            if not (how is Cleared.VOID and self.status(key)):
                self.cleared[key] = how
        if self.pending:
            self.pending = frozenset(h for h in self.pending if not all(self.status(k) for k in h.keys))

    def fill(self) -> None:
        """A backward ran: every `.grad` may be there again."""
        self.fills += 1
        self.cleared = {}

    @property
    def ran(self) -> bool:
        return self.fills > 0

    def assume(self, facts: Facts) -> None:
        self.clear(facts.void, Cleared.VOID)
        if facts.capturing is not None:
            self.dead = self.dead or self.capturing is (not facts.capturing)
            self.capturing = facts.capturing

    def suppose(self, text: str, holds: bool) -> None:
        """Condition `text` is decided here: harvests made where it was decided otherwise are of another path."""
        if self.pending:
            self.pending = frozenset(h for h in self.pending if (text, not holds) not in h.when)
        self.assumed |= {(text, holds)}


def join(states: Iterable[State | None]) -> State | None:
    """The union of paths that meet; None when none arrives. A path under capture is exempt where another path is not under it."""
    reached = [s for s in states if s is not None and not s.dead]
    if len(reached) < 2:
        return reached[0] if reached else None
    judged = [s for s in reached if s.capturing is not True] or reached
    return State(
        names=_join_names([s.names for s in reached], [s.born for s in reached]),
        pending=frozenset().union(*(s.pending for s in judged)),
        cleared=_join_cleared(judged),
        published=frozenset().union(*(s.published for s in judged)),
        born=NONE.union(*(s.born for s in reached)),
        fills=max(s.fills for s in reached),
        capturing=reached[0].capturing if len({s.capturing for s in reached}) == 1 else None,
        assumed=frozenset.intersection(*(s.assumed for s in reached)),
    )


def _join_names(tables: list[Names], born: list[Keys]) -> Names:
    joined, before = tables[0].copy(), born[0]
    for table, more in zip(tables[1:], born[1:], strict=True):
        joined.merge(table, lambda a, b, before=before, more=more: choice(a, b, before, more))  # type: ignore[misc]
        before |= more
    return joined


def choice(a: Value, b: Value, born_a: Keys, born_b: Keys) -> Value:
    """One of two values. Two tensors that exist side by side make it weak; one that was made on its own path does not."""
    both = union(a, b)
    mine, yours = _made(a), _made(b)
    if both.sequence or not mine or not yours or mine == yours:
        return both
    apart = not (mine & born_b - yours) and not (yours & born_a - mine)
    return both if apart else replace(both, weak=True)


def _made(value: Value) -> Keys:
    """What a detach made: an argument that is rebound in one branch is not another leaf beside it."""
    return frozenset(k for k in value.keys if k.origin.kind is Kind.DETACHED)


def _join_cleared(states: list[State]) -> dict[Key, Cleared]:
    found: dict[Key, Cleared] = {}
    for key in dict.fromkeys(k for s in states for k in s.cleared):
        how = {s.status(key) for s in states}
        if None not in how:
            found[key] = Cleared.RELEASED if Cleared.RELEASED in how else Cleared.VOID
    return found


def after_loop(before: State, ends: list[State], breaks: list[State], visited: Keys) -> State:
    """The state behind a loop that visits every tensor of `visited`: for those it is what one round left behind.

    For the others the loop may not have run at all. A `break` leaves elements unvisited.
    """
    joined = join([before, *ends, *breaks])
    assert joined is not None
    rounds = join(ends)
    if rounds is None or not visited or any(s.capturing is not True for s in breaks):
        return joined
    settled = rounds.pending if breaks == [] else rounds.pending.union(*(s.pending for s in breaks))
    joined.pending = frozenset(h for h in joined.pending if not _inside(h.keys, visited) or h in settled)
    ended = {k: how for k, how in rounds.cleared.items() if _inside({k}, visited)}
    joined.cleared = _without(joined.cleared, visited) | ended
    return joined


def _inside(keys: Iterable[Key], visited: Keys) -> bool:
    return all(any(v.covers(k) for v in visited) for k in keys)


def _without(cleared: Mapping[Key, Cleared], visited: Keys) -> dict[Key, Cleared]:
    return {k: how for k, how in cleared.items() if not _inside({k}, visited)}

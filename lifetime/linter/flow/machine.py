"""The abstract machine: what it remembers while it walks a function, and what counts as an event."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

from lifetime.linter.flow.index import index
from lifetime.linter.flow.names import WEIGHT
from lifetime.linter.flow.state import Cleared, Harvest, Publication, State
from lifetime.linter.flow.values import EMPTY, Key, Keys, Kind, Origin, Scope, Value
from lifetime.linter.module import Function, Module

BUDGET = 30_000
"""Expressions looked at for one function before the flow counts as not understood."""


class GiveUp(Exception):
    """The function is too large or too deep to follow: it stays silent."""


@dataclass
class Exits:
    """Paths that leave a block early."""

    returns: list[tuple[State, Value, ast.AST | None]] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


@dataclass
class Release:
    """A statement that sets `.grad` of leaves to None. `guarded`: never under a capture; `loop` is the loop around it that does
    it for all."""

    node: ast.expr
    keys: Keys
    guarded: bool
    ran: bool
    loop: ast.AST | None
    inverted: bool = False
    """It runs under a capture only."""


@dataclass
class Events:
    """What happened in one walk, on any path."""

    harvests: dict[ast.AST, tuple[ast.AST, Keys]] = field(default_factory=dict)
    """Each `.grad` read after a backward: the expression that is read from, and its tensors."""
    releases: dict[ast.AST, Release] = field(default_factory=dict)
    late: dict[ast.AST, Keys] = field(default_factory=dict)
    reads: dict[ast.AST, Keys] = field(default_factory=dict)
    """Every read of `.grad`, before a backward and in bare tests too."""
    stores: list[tuple[str, Value]] = field(default_factory=list)
    """What was stored under a path, in order: `self.inputs`."""
    emptied: set[str] = field(default_factory=set)
    deferred: set[Key] = field(default_factory=set)
    """Leaves that were handed to something that runs at the end of a block (`ExitStack.callback`): not understood."""
    outputs: set[Key] = field(default_factory=set)
    """What a backward was started from."""
    given: set[Key] = field(default_factory=set)
    """The gradients that a backward was handed."""
    runs: set[ast.AST] = field(default_factory=set)
    """The calls that start one."""
    used: set[Key] = field(default_factory=set)
    """What was handed to a function that is not followed: the graph may hang on it."""
    holding: set[str] = field(default_factory=set)
    """Names that leaves or their gradients were bound to."""
    guarded: set[ast.AST] = field(default_factory=set)
    """Reads where a capture is excluded."""
    home: dict[ast.AST, Module] = field(default_factory=dict)


class Machine(ABC):
    """State of one walk. `in_function` is True for a backward of an `autograd.Function`."""

    def __init__(self, module: Module, in_function: bool = False) -> None:
        self.module = module
        self.in_function = in_function
        self.events = Events()
        self.armed: dict[Origin, set[Key]] = {}
        self.origins: dict[tuple[object, ...], Origin] = {}
        self.context: tuple[ast.AST, ...] = ()
        self.texts: dict[ast.AST, str] = {}
        self.placed: dict[tuple[str, tuple[ast.AST, ...]], Key] = {}
        """What an attribute that nobody stored holds, by its path and the calls within which the path means that object."""
        self.accesses: dict[ast.AST, ast.Call] = {}
        self.exits = Exits()
        self.loops: list[ast.AST] = []
        self.budget = BUDGET

    @abstractmethod
    def eval(self, node: ast.expr | None, state: State, scope: Scope) -> Value:
        """What `node` may hold; `state` moves on."""

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, state: State, scope: Scope) -> None:
        """Bind `value` to `target`."""

    def forget(self) -> None:
        """The walk is over: only what happened in it is asked for from here on."""
        self.exits, self.origins, self.texts, self.accesses = Exits(), {}, {}, {}

    def spend(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise GiveUp

    def key(self, kind: Kind, node: ast.AST, state: State, name: str = "") -> Key:
        place = (kind, node, self.context, name)
        if place not in self.origins:
            self.origins[place] = Origin(kind, node, self.context, name)
        made = Key(self.origins[place])
        if kind is Kind.DETACHED:
            state.born |= {made}
        return made

    def fresh(self, kind: Kind, node: ast.AST, state: State, name: str = "") -> Value:
        """A new tensor (or something unknown) that is made at `node`."""
        return Value(keys=frozenset({self.key(kind, node, state, name)}), path=f"#{id(node)}")

    def is_leaf(self, key: Key) -> bool:
        """Whether a backward through the graph fills `.grad` of this tensor, which is nobody's parameter."""
        kind = key.origin.kind
        if kind in {Kind.DETACHED, Kind.FIELD}:
            return True
        if kind is Kind.WEIGHT or (kind is Kind.FRESH and not self.in_function):
            return False
        return self.is_armed(key)

    def is_armed(self, key: Key) -> bool:
        return any(a.meets(key) for a in self.armed.get(key.origin, ()))

    def arm(self, value: Value, state: State) -> None:
        """`requires_grad` was set in place."""
        for key in value.all_keys:
            self.armed.setdefault(key.origin, set()).add(key)

    def holds_gradient(self, key: Key) -> bool:
        """A leaf, or the caller's tensor, which may be one."""
        return key.origin.kind is Kind.ARGUMENT or self.is_leaf(key)

    def without_void(self, value: Value, state: State) -> Value:
        """`value` where a test has shown that it is no tensor, or None: it stands for nothing then."""
        if not state.cleared or not value.keys or value.sequence:
            return value
        left = frozenset(k for k in value.keys if state.status(k) is not Cleared.VOID)
        return value if left == value.keys else replace(value, keys=left)

    def read(self, node: ast.AST, base: ast.AST, value: Value, state: State, scope: Scope) -> Value:
        """`.grad` of `value` is read at `node`."""
        keys = value.all_keys
        self.events.reads[node] = self.events.reads.get(node, frozenset()) | keys
        self.events.home[node] = scope.module
        candidates = frozenset(k for k in keys if self.holds_gradient(k))
        elsewhere = any(k.origin.kind is Kind.FIELD for k in candidates)
        if not candidates or not (state.ran or elsewhere):
            return Value(grads=keys, read_at=state.fills)
        if state.capturing is False:
            self.events.guarded.add(node)
        status = {k: state.status(k) for k in candidates}
        if all(how is Cleared.RELEASED for how in status.values()):
            self.events.late[node] = candidates
            return Value(grads=keys, read_at=state.fills)
        before, known = self.events.harvests.get(node, (base, frozenset()))
        self.events.harvests[node] = (before, known | candidates)
        open_ = frozenset(k for k, how in status.items() if how is None)
        seen = frozenset(k for h in state.pending for k in h.keys)
        new = frozenset(k for k in open_ if not any(s.meets(k) for s in seen))
        weak = value.weak and len(new) > 1
        found = (
            [Harvest(node, new, True, state.assumed)]
            if weak
            else [Harvest(node, frozenset({k}), False, state.assumed) for k in new]
        )
        state.pending |= frozenset(found)
        return Value(grads=keys, read_at=state.fills)

    def release(self, node: ast.expr, value: Value, state: State, scope: Scope) -> None:
        """`.grad` of `value` is set to None at `node`."""
        leaves = frozenset(k for k in value.all_keys if self.holds_gradient(k))
        guarded = state.capturing is False
        before = self.events.releases.get(node)
        loop = self.loops[-1] if self.loops else None
        if leaves:
            merged = leaves | before.keys if before else leaves
            ran = state.ran or (before is not None and before.ran)
            self.events.releases[node] = Release(
                node, merged, guarded and (before is None or before.guarded), ran, loop, state.capturing is True
            )
            self.events.home[node] = scope.module
        if value.weak and len(leaves) > 1:
            state.pending = frozenset(h for h in state.pending if not (h.weak and h.keys == leaves))
        else:
            state.clear(value.all_keys, Cleared.RELEASED)

    def publish(self, path: str, node: ast.AST, value: Value, state: State, scope: Scope, whole: Value | None = None) -> None:
        """`value` is stored under `path`, which outlives the call; `whole` is what lies there then."""
        if path.rpartition(".")[2] in index(scope.module).weak:
            return
        keys = frozenset(k for k in value.all_keys if k.origin.kind not in {Kind.WEIGHT, Kind.FRESH, Kind.FIELD, Kind.ARGUMENT})
        self.events.stores.append((path, whole or value))
        self.events.home[node] = scope.module
        if keys:
            state.published |= {Publication(path, node, keys)}

    def taken(self, value: Value) -> None:
        """What lies in `value` is taken out of it: nobody meets it there again."""
        fields = (k.origin.name for k in value.all_keys if k.origin.kind is Kind.FIELD)
        self.events.emptied.update((value.path.partition("[")[0], *fields))

    def empty(self, path: str, state: State) -> None:
        """What `path` held is dropped."""
        self.events.emptied.add(path)
        state.published = frozenset(p for p in state.published if p.path != path and not p.path.startswith(f"{path}."))

    def argument(self, node: ast.arg, state: State, function: Function | ast.Lambda) -> Value:
        """A parameter of the function that is walked: the caller's tensor."""
        kind = Kind.WEIGHT if WEIGHT.search(node.arg) else Kind.ARGUMENT
        key = self.key(kind, node, state, node.arg)
        return Value(keys=frozenset({key}), path=node.arg)


def plain(value: Value) -> Value:
    """`value` without what it may be called or tested as."""
    return EMPTY if value.callee or value.cls else value

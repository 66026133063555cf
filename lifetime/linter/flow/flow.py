"""What the walks over one file found, put together: leaks, releases, late reads, publications."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from lifetime.linter.flow.fields import Fields
from lifetime.linter.flow.interpreter import Interpreter
from lifetime.linter.flow.machine import GiveUp, Release
from lifetime.linter.flow.names import is_test_function
from lifetime.linter.flow.roots import Root, roots
from lifetime.linter.flow.state import State
from lifetime.linter.flow.values import Key, Keys, Kind, Value
from lifetime.linter.module import Module


@dataclass
class Walk:
    """One backward, walked: which `.grad` reads are still pending at one of its normal returns, and what else happened."""

    root: Root
    machine: Interpreter
    leaked: dict[ast.AST, Keys] = field(default_factory=dict)
    published: dict[ast.AST, tuple[str, Keys]] = field(default_factory=dict)
    places: set[tuple[str, Keys]] = field(default_factory=set)
    """Every place outside that holds leaves at a return, whether or not it counts as a publication."""
    returned: dict[ast.AST, Keys] = field(default_factory=dict)
    handed: Keys = frozenset()
    """The gradients that are returned."""
    understood: bool = True


@dataclass(frozen=True)
class Leak:
    """A harvest without a release: the `.grad` read, the expression of the leaves, the walk that shows it."""

    node: ast.expr
    leaves: ast.expr
    keys: Keys
    walk: Walk


@dataclass(frozen=True)
class Published:
    node: ast.stmt | ast.expr
    path: str
    """Where the leaf went; empty where it is returned."""
    keys: Keys
    walk: Walk


@dataclass
class Flow:
    """Everything the flow rules ask about one file."""

    walks: list[Walk] = field(default_factory=list)
    every: list[Leak] = field(default_factory=list)
    """All leaks; `leaks` has one a line."""
    leaks: list[Leak] = field(default_factory=list)
    releases: list[tuple[Release, Walk]] = field(default_factory=list)
    late: list[tuple[ast.expr, Walk]] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)


def flow(module: Module) -> Flow:
    """The flow of `module`; computed once, whichever rule asks first."""
    found = module.memo.get("flow")
    if not isinstance(found, Flow):
        found = module.memo["flow"] = _build(module)
    return found


def _build(module: Module) -> Flow:
    fields = Fields()
    walks = [_walk(module, root, fields) for root in roots(module)]
    found = Flow(walks=walks)
    found.every = list(_leaks(module, walks))
    found.leaks = _first_of_line(found.every)
    seen: set[ast.AST] = set()
    for walk in walks:
        events = walk.machine.events
        for node, release in events.releases.items():
            if node not in seen and events.home[node] is module and any(_counts(walk, k) for k in release.keys):
                found.releases.append((release, walk))
        late = (n for n in events.late if events.home[n] is module and isinstance(n, ast.expr))
        found.late.extend((n, walk) for n in late if n not in seen and any(_counts(walk, k) for k in events.late[n]))
        seen |= set(events.late)
    found.published = list(_published(module, walks))
    return found


def _walk(module: Module, root: Root, fields: Fields) -> Walk:
    machine = Interpreter(module, root.in_function, fields.read)
    walk = Walk(root, machine)
    try:
        returns = machine.walk(root.function, root.owner)
    except (GiveUp, RecursionError):
        walk.understood = False
        machine.events = type(machine.events)()
        return walk
    if not root.in_function and _is_measurement(machine):
        walk.understood = False
        machine.events = type(machine.events)()
        return walk
    walk.handed = frozenset().union(*(value.all_grads for _, value, _ in returns))
    for state, value, node in returns:
        if state.capturing is not True:
            _judge(walk, state)
            _note_published(walk, state, value, node)
    machine.forget()
    return walk


def _is_measurement(machine: Interpreter) -> bool:
    """Whether every gradient is made on the spot (`torch.ones_like(y)`): a Jacobian, a saliency map, a benchmark, and no piece of
    a larger backward. One that another function was handed may have been received into."""
    given = machine.events.given
    return bool(given) and all(k.origin.kind is Kind.FRESH and k not in machine.events.used for k in given)


def _judge(walk: Walk, state: State) -> None:
    for harvest in state.pending:
        keys = frozenset(k for k in harvest.keys if _counts(walk, k))
        if keys:
            walk.leaked[harvest.node] = walk.leaked.get(harvest.node, frozenset()) | keys


def _counts(walk: Walk, key: Key) -> bool:
    """A leaf, or the caller's tensor whose gradient the function hands back."""
    if any(key.meets(deferred) for deferred in walk.machine.events.deferred):
        return False
    if key.origin.kind is not Kind.ARGUMENT or walk.machine.is_leaf(key):
        return walk.machine.is_leaf(key)
    # A pipeline step is handed the output too; what runs its own forward on a caller's tensor is a measurement or a reference.
    handed_output = any(k.origin.kind in {Kind.ARGUMENT, Kind.FIELD} for k in walk.machine.events.outputs)
    return handed_output and any(key.meets(h) for h in walk.handed)


def _note_published(walk: Walk, state: State, value: Value, node: ast.AST | None) -> None:
    harvested = frozenset(k for _, keys in walk.machine.events.harvests.values() for k in keys)
    walk.places |= {(p.path, p.keys) for p in state.published}
    for publication in state.published if state.ran else ():
        keys = frozenset(k for k in publication.keys if _shared(walk, k, harvested))
        if keys:
            walk.published[publication.node] = publication.path, keys
    beside = frozenset(k for k in value.all_keys if k.origin.kind is Kind.DETACHED and any(k.meets(h) for h in harvested))
    if node is not None and beside and value.all_grads:
        walk.returned[node] = beside


def _shared(walk: Walk, key: Key, harvested: Keys) -> bool:
    """Whether a key is a leaf that this backward fills; what is only detached, or stored for a later call, is none."""
    machine = walk.machine
    recomputed = machine.is_armed(key) and any(key.meets(used) for used in machine.events.used)
    return machine.is_leaf(key) and (recomputed or any(key.meets(h) for h in harvested))


def _leaks(module: Module, walks: list[Walk]) -> Iterable[Leak]:
    """A helper's harvest is judged by those who call it, if anybody in this file does; else by the helper itself."""
    within = {walk.root.function: walk for walk in walks}
    seen: dict[ast.expr, list[Walk]] = {}
    for walk in walks:
        for node in walk.machine.events.harvests:
            if walk.machine.events.home[node] is module and isinstance(node, ast.expr):
                seen.setdefault(node, []).append(walk)
    for node, seen_by in seen.items():
        function = module.enclosing_function(node)
        if function is None or is_test_function(module, function):
            continue
        callers = [w for w in seen_by if w is not within.get(function)] or seen_by
        leaking = next((w for w in callers if node in w.leaked), None)
        if leaking is not None:
            leaves, _ = leaking.machine.events.harvests[node]
            assert isinstance(leaves, ast.expr)
            yield Leak(node, leaves, leaking.leaked[node], leaking)


def _first_of_line(leaks: Iterable[Leak]) -> list[Leak]:
    """One finding a line: two leaves read side by side are one harvest to release."""
    found: dict[int, Leak] = {}
    for leak in sorted(leaks, key=lambda k: (k.node.lineno, k.node.col_offset)):
        found.setdefault(leak.node.lineno, leak)
    return list(found.values())


def _by_backward(module: Module, node: ast.AST, walk: Walk) -> bool:
    """The function that harvests or runs the backward publishes, not one that it calls: that is a protocol between the two."""
    around = {module.enclosing_function(node), *module.ancestors(node)}
    return walk.root.function in around or any(module.enclosing_function(n) in around for n in walk.machine.events.harvests)


def _published(module: Module, walks: list[Walk]) -> Iterable[Published]:
    seen: set[ast.AST] = set()
    for walk in walks:
        private = walk.root.function.name.startswith("_") and walk.root.function.name != "__call__"
        for node, (path, keys) in walk.published.items():
            if (
                node not in seen
                and _by_backward(module, node, walk)
                and walk.machine.events.home[node] is module
                and isinstance(node, (ast.stmt, ast.expr))
            ):
                seen.add(node)
                yield Published(node, path, keys, walk)
        for node, keys in walk.returned.items():
            if isinstance(node, ast.stmt) and not private:
                yield Published(node, "", keys, walk)

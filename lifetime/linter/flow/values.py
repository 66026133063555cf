"""What an expression may hold: keys of tensors, gradients of keys, sequences, functions and objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from lifetime.linter.module import Function, Module


class Kind(Enum):
    """Where a tensor comes from. Only a detached one and a field are leaves by birth; others become one when `requires_grad` is
    set."""

    DETACHED = "detached"
    FIELD = "field"
    ARGUMENT = "argument"
    FRESH = "fresh"
    WEIGHT = "weight"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Origin:
    """One place that makes tensors; each is made once a walk, so identity is equality. `context` are the calls that were
    followed to get there: two calls make two leaves."""

    kind: Kind
    node: ast.AST | None
    context: tuple[ast.AST, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Key:
    """The tensors of one origin, or those that `parts` select (`[0]`, `[1:]`). A container and its elements share the key."""

    origin: Origin
    parts: tuple[str, ...] = ()

    def covers(self, other: Key) -> bool:
        if self.origin is SPAN:
            return self.parts[0] in other.parts
        return self.origin is other.origin and self.parts == other.parts[: len(self.parts)]

    def wider(self) -> Iterator[Key]:
        """Itself and every key that covers it."""
        yield self
        for length in range(len(self.parts)):
            yield Key(self.origin, self.parts[:length])

    def meets(self, other: Key) -> bool:
        return self.covers(other) or other.covers(self)


SPAN = Origin(Kind.UNKNOWN, None)
"""A key of it covers whatever an index over `range(n)` selects, where nothing says how many there are."""
Keys = frozenset[Key]
NONE: Keys = frozenset()


@dataclass(frozen=True)
class Facts:
    """What a condition proves: tensors that hold no gradient here, and whether a capture is under way (None: unknown)."""

    void: Keys = NONE
    capturing: bool | None = None

    def both(self, other: Facts) -> Facts:
        known = self.capturing if self.capturing is not None else other.capturing
        return Facts(self.void | other.void, known)

    def either(self, other: Facts) -> Facts:
        return Facts(self.void & other.void, self.capturing if self.capturing == other.capturing else None)


NOTHING = Facts()


@dataclass(frozen=True)
class Branches:
    """What a condition proves where it holds and where it does not."""

    true: Facts = NOTHING
    false: Facts = NOTHING

    def inverted(self) -> Branches:
        return Branches(self.false, self.true)


@dataclass(frozen=True, eq=False)
class Callee:
    """A function that can be followed: where it is defined, what it closes over, what it is bound to."""

    node: Function | ast.Lambda
    module: Module
    closure: Scope | None = None
    owner: ClassRef | None = None
    bound: tuple[Value, ...] = ()


@dataclass(eq=False)
class Scope:
    """`function` is the scope that assignments in a comprehension's walrus go to; `outer` names are declared global or
    nonlocal."""

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


@dataclass(frozen=True)
class ClassRef:
    node: ast.ClassDef
    module: Module = field(compare=False)


@dataclass(frozen=True)
class Value:
    """An abstract value.

    A tensor or an unknown object has `keys`; a fixed sequence has `items` (with `labels` when it is a mapping), any other
    sequence an `element`. `weak` marks one of several tensors, so that clearing it clears none for certain. `path` names the
    place attributes are kept under. `index` are the keys that this loop index runs over.
    """

    keys: Keys = NONE
    grads: Keys = NONE
    items: tuple[Value, ...] | None = None
    labels: tuple[str, ...] | None = None
    element: Value | None = None
    weak: bool = False
    mapping: bool = False
    """Iterating over it yields names, not tensors."""
    path: str = ""
    callee: Callee | None = None
    cls: ClassRef | None = None
    instance: bool = False
    test: Branches | None = None
    empty: bool = False
    index: Keys = NONE
    manager: tuple[Callee, object] | None = None
    """A generator that is a context manager, and the call that made it: it runs around the body of the `with`."""
    runs: Keys | None = None
    """It is the `backward` of these outputs: calling it fills `.grad`."""
    read_at: int = -1
    """How many backwards had run when the gradient was read: to put it back after another one is a release."""

    @property
    def sequence(self) -> bool:
        return self.items is not None or self.element is not None

    @cached_property
    def all_keys(self) -> Keys:
        """Its own keys and those of everything in it."""
        return self.keys.union(*(part.all_keys for part in self._inner()))

    @cached_property
    def all_grads(self) -> Keys:
        return self.grads.union(*(part.all_grads for part in self._inner()))

    def _inner(self) -> tuple[Value, ...]:
        return (self.items or ()) + ((self.element,) if self.element else ())


SPANNING = "#range "
"""What the path of an index over `range(n)` starts with; the text of `n` follows."""
EMPTY = Value()
NULL = Value(empty=True)


def union(*values: Value) -> Value:
    """A value that is one of `values`, or holds all of them; what is None adds nothing."""
    found = [v for v in dict.fromkeys(values) if not v.empty and v != EMPTY]
    if not found:
        return NULL if values and all(v.empty for v in values) else EMPTY
    result = found[0]
    for other in found[1:]:
        result = _merge(result, other)
    return result


def _merge(a: Value, b: Value) -> Value:
    same = a.items is not None and b.items is not None and len(a.items) == len(b.items) and a.labels == b.labels
    items = tuple(union(x, y) for x, y in zip(a.items or (), b.items or (), strict=False)) if same else None
    if same:
        inner = None
    else:
        parts = [element(v) for v in (a, b) if v.sequence]
        inner = union(*parts) if parts else None
    return Value(
        keys=a.keys | b.keys,
        grads=a.grads | b.grads,
        items=items,
        labels=a.labels if same else None,
        element=inner,
        weak=a.weak or b.weak,
        path=a.path if a.path == b.path else "",
        callee=a.callee or b.callee,
        cls=a.cls or b.cls,
        instance=a.instance or b.instance,
        index=a.index | b.index,
        mapping=a.mapping or b.mapping,
        runs=b.runs if a.runs is None else a.runs | (b.runs or NONE),
        read_at=max(a.read_at, b.read_at),
    )


def element(value: Value) -> Value:
    """What iterating over `value` yields, each element standing for all of them."""
    own = Value(keys=value.keys, grads=value.grads, weak=value.weak)
    if value.items is not None:
        return union(*value.items, own) if value.keys else union(*value.items)
    if value.element is not None:
        return union(value.element, own) if value.keys else value.element
    return own


def iterate(value: Value) -> Value:
    """What a loop over `value` binds: an element, or a name that leads to all of them."""
    return Value(index=value.all_keys) if value.mapping else element(value)


def sequence(inner: Value) -> Value:
    return Value(element=inner)


def part(value: Value, label: str) -> Value:
    """The part of `value` that `label` selects: its keys are narrowed, so that clearing it does not clear the rest."""
    if value.items is not None:
        return union(*(part(v, label) for v in value.items))
    if value.element is not None:
        return part(value.element, label)
    narrowed = frozenset(_narrow(k, label) for k in value.keys)
    return replace(value, keys=narrowed, path=f"{value.path}{label}" if value.path else "", index=NONE)


def _narrow(key: Key, label: str) -> Key:
    kept = key.parts
    if label.startswith(f"[{SPANNING}"):
        kept = tuple(p for p in kept if not p.startswith(f"[{SPANNING}"))
    return Key(key.origin, (*kept, label)) if len(kept) < 3 else key


def unpack(value: Value, count: int, starred: int | None) -> list[Value]:
    """`value` spread over `count` targets, of which number `starred` takes the rest."""
    items = value.items
    if items is not None and starred is not None and len(items) >= count - 1:
        rest = len(items) - (count - 1)
        middle = Value(items=items[starred : starred + rest])
        return [*items[:starred], middle, *items[starred + rest :]]
    if items is not None and len(items) == count:
        return list(items)
    inner = element(value)
    return [sequence(part(inner, f"[{i}:]")) if i == starred else part(inner, f"[{i}]") for i in range(count)]


def visited(inner: Value) -> Keys:
    """The tensors that a loop which binds `inner` comes by: its elements, and those its index leads to."""
    spanned = {Key(SPAN, (f"[{inner.path}]",))} if inner.path.startswith(SPANNING) else NONE
    return inner.all_keys | spanned | inner.index.union(*(visited(v) for v in inner.items or ()))

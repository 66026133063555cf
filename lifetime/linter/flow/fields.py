"""Attributes that other methods fill with leaves: `self.inputs` of a stage, `ctx.inputs`, `ctx.saved_tensors`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from lifetime.linter.flow.classes import bases, is_autograd_function
from lifetime.linter.flow.index import index
from lifetime.linter.flow.interpreter import Interpreter
from lifetime.linter.flow.machine import GiveUp
from lifetime.linter.flow.roots import makers
from lifetime.linter.flow.survey import survey
from lifetime.linter.flow.values import ClassRef, Key, Kind, Origin, Value, union
from lifetime.linter.module import Function, Module

BUDGET = 4_000
"""A function that fills a field with leaves is short; a long one is not worth its time."""


@dataclass
class Fields:
    """What the functions of a file store under an attribute, found when it is first asked for."""

    known: dict[tuple[ast.AST | None, str], Value | None] = field(default_factory=dict)
    walked: dict[Function, Interpreter | None] = field(default_factory=dict)

    def read(self, module: Module, owner: ClassRef | None, name: str, context: bool) -> Value | None:
        """The leaves that lie in `self.NAME` of `owner` or on the class itself (or in `NAME` of a ctx); None where nobody stores
        any."""
        place = (owner.node if owner is not None and (not context or name == "saved_tensors") else None, name)
        if place not in self.known:
            self.known[place] = None
            self.known[place] = self._find(module, owner, name, context)
        return self.known[place]

    def _find(self, module: Module, owner: ClassRef | None, name: str, context: bool) -> Value | None:
        found: list[Value] = []
        for home, function, cls in _fillers(module, owner, name, context):
            walker = self._walk(home, function, cls)
            if walker is None:
                continue
            wanted = {"ctx", "self.ctx"} if context else {"self", *(c.node.name for c in [owner] if c is not None)}
            for path, value in walker.events.stores:
                base, _, attribute = path.rpartition(".")
                if attribute == name and (base in wanted or (context and base.endswith(".ctx"))):
                    kept = _kept(value, walker, f"ctx.{name}" if context else path)
                    found.extend([kept] if kept.all_keys else [])
        return union(*found) if found else None

    def _walk(self, home: Module, function: Function, cls: ClassRef | None) -> Interpreter | None:
        """The walk over a function that fills something: once for all its attributes, none within itself."""
        if function not in self.walked:
            self.walked[function] = None
            walker = Interpreter(home, cls is not None and is_autograd_function(cls), self.read)
            walker.budget = BUDGET
            try:
                walker.walk(function, cls)
                self.walked[function] = walker
            except (GiveUp, RecursionError):
                pass
        return self.walked[function]


def _fillers(module: Module, owner: ClassRef | None, name: str, context: bool) -> list[tuple[Module, Function, ClassRef | None]]:
    """Functions that may fill `name` with leaves: of any class for a ctx, else of `owner`, its bases and what derives from it."""
    if context and name != "saved_tensors":
        places: list[tuple[Module, ast.ClassDef | None]] = [(module, None)]
    elif owner is None:
        return []
    else:
        family = [(c.module, c.node) for c in bases(owner)]
        places = [*family, *((module, c) for c in index(module).derived.get(owner.node.name, ()))]
    found: list[tuple[Module, Function, ClassRef | None]] = []
    for home, cls in places:
        names = index(home)
        for function in names.fillers.get((cls, name), ()):
            node = survey(home)[function].owner
            if function.name in makers(home):
                found.append((home, function, ClassRef(node, home) if node is not None else None))
    return found


def _kept(value: Value, walker: Interpreter, path: str) -> Value:
    """`value` with the keys of leaves turned into keys of the field, and without all others."""
    keys = frozenset(Key(Origin(Kind.FIELD, k.origin.node, (), path), k.parts) for k in value.keys if walker.is_leaf(k))
    items = tuple(_kept(v, walker, path) for v in value.items) if value.items is not None else None
    inner = _kept(value.element, walker, path) if value.element is not None else None
    return replace(value, keys=keys, grads=frozenset(), items=items, element=inner, path="", callee=None, cls=None)

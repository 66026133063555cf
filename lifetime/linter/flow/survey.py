"""What every function of a file does by itself, seen in one walk over the file."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from lifetime.linter.flow.names import RUNS, hands_gradients, is_backward_name, last_name, runs_backward
from lifetime.linter.module import Function, Module
from lifetime.linter.nodes import below

MODULES = {"autograd", "nn"}
"""`autograd.grad` and `nn.grad` are no gradient of anything."""
MAKER = re.compile(r"detach|requires_grad|Variable")
GROWS = {"append", "extend", "add", "appendleft", "insert", "update", "put", "put_nowait", "setdefault"}


@dataclass
class Traits:
    """What one function does; what a function nested in it does counts for both."""

    owner: ast.ClassDef | None = None
    backward: bool = False
    """It is called a backward."""
    hands: bool = False
    """It hands output gradients to a backward (itself: a nested function counts for itself only)."""
    grads: bool = False
    makes: bool = False
    """It detaches tensors or sets `requires_grad`."""
    calls: set[str] = field(default_factory=set)
    fills: dict[str, None] = field(default_factory=dict)
    """Names of attributes that it stores into, or into a container they hold."""


def survey(module: Module) -> dict[Function, Traits]:
    """The functions of `module` and their traits; computed once."""
    found = module.memo.get("survey")
    if not isinstance(found, dict):
        found = module.memo["survey"] = _walk(module)
    return found


def _walk(module: Module) -> dict[Function, Traits]:
    found: dict[Function, Traits] = {}
    waiting: list[tuple[ast.AST, ast.ClassDef | None, tuple[Traits, ...]]] = [(module.tree, None, ())]
    while waiting:
        node, owner, around = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node] = Traits(owner, is_backward_name(node.name))
            around = (*around, found[node])
        elif around:
            _note(node, around)
        inner = node if isinstance(node, ast.ClassDef) else None
        waiting.extend((child, inner, around) for child in below(node))
    return found


def _note(node: ast.AST, around: tuple[Traits, ...]) -> None:
    match node:
        case ast.Call():
            _note_call(node, around)
        case ast.Attribute():
            _note_attribute(node, around)
        case ast.Name(id=name) if MAKER.search(name):
            _mark(around, "makes")
        case ast.Constant(value="grad"):
            _mark(around, "grads")
        case ast.Assign(value=ast.Attribute(attr=attr)) if attr in RUNS:
            around[-1].hands = True
        case ast.Subscript(ctx=ast.Store(), value=ast.Attribute(attr=name)):
            _fill(around, name)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            around[-1].calls |= {last_name(i.context_expr.func) for i in items if isinstance(i.context_expr, ast.Call)}


def _note_call(node: ast.Call, around: tuple[Traits, ...]) -> None:
    own = around[-1]
    own.hands = own.hands or hands_gradients(node) or (own.backward and runs_backward(node))
    names = {last_name(node.func), *map(last_name, node.args)}
    for traits in around:
        traits.calls |= names
    if isinstance(node.func, ast.Attribute):
        base = node.func.value.value if isinstance(node.func.value, ast.Subscript) else node.func.value
        if node.func.attr == "save_for_backward":
            _fill(around, "saved_tensors")
        elif node.func.attr in GROWS and isinstance(base, ast.Attribute):
            _fill(around, base.attr)


def _note_attribute(node: ast.Attribute, around: tuple[Traits, ...]) -> None:
    for traits in around:
        traits.calls.add(node.attr)  # it may be a property
    if MAKER.search(node.attr):
        _mark(around, "makes")
    if node.attr == "grad" and last_name(node.value) not in MODULES:
        _mark(around, "grads")
    if isinstance(node.ctx, ast.Store):
        _fill(around, node.attr)


def _mark(around: tuple[Traits, ...], trait: str) -> None:
    for traits in around:
        setattr(traits, trait, True)


def _fill(around: tuple[Traits, ...], name: str) -> None:
    for traits in around:
        traits.fills[name] = None

"""Which functions of a file are a backward, and which of those can see a `.grad` at all."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from lifetime.linter.flow.classes import is_autograd_function
from lifetime.linter.flow.index import index
from lifetime.linter.flow.names import (
    hands_gradients,
    is_backward_name,
    is_benchmark,
    is_test_function,
    last_name,
    runs_backward,
)
from lifetime.linter.flow.values import ClassRef
from lifetime.linter.gate import is_test
from lifetime.linter.module import Function, Module

MODULES = {"autograd", "nn"}
"""`autograd.grad` and `nn.grad` are no gradient of anything."""


MAKER = re.compile(r"detach|requires_grad|Variable")


@dataclass
class Traits:
    """What one function does by itself: nested functions count for themselves and for it."""

    backward: bool = False
    """It is called a backward."""
    hands: bool = False
    grads: bool = False
    makes: bool = False
    """It detaches tensors or sets `requires_grad`."""
    calls: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Root:
    function: Function
    owner: ClassRef | None
    in_function: bool


def makers(module: Module) -> set[str]:
    """Names of functions in which leaves are made, by themselves or by what they call."""
    found = module.memo.get("makers")
    if not isinstance(found, set):
        traits = traits_of(module)
        found = module.memo["makers"] = _reaching({f.name for f, t in traits.items() if t.makes}, traits)
    return found


def roots(module: Module) -> list[Root]:
    """Every function to walk: a backward, by its class, by what it hands on, or because it calls such a helper with arguments.

    Tests are none: they compare gradients on purpose and end at once.
    """
    if is_test(module.path, module.source.encode(errors="replace")):
        return []
    names = index(module)
    traits = traits_of(module)
    handing = {f.name for f, t in traits.items() if t.hands}
    seeing = _reaching({f.name for f, t in traits.items() if t.grads}, traits)
    found = []
    for function, own in traits.items():
        cls = names.owners.get(function)
        owner = ClassRef(cls, module) if cls is not None else None
        custom = owner is not None and function.name == "backward" and is_autograd_function(owner)
        through = own.calls & handing and (own.grads or own.makes or own.backward)
        if not (custom or ((own.hands or through) and not is_benchmark(module))):
            continue
        if (own.grads or own.calls & seeing) and not is_test_function(module, function):
            found.append(Root(function, owner, custom))
    return found


def _reaching(names: set[str], traits: dict[Function, Traits]) -> set[str]:
    """Names of functions that call one of `names`, however deep."""
    callers: dict[str, set[str]] = {}
    for function, own in traits.items():
        for called in own.calls:
            callers.setdefault(called, set()).add(function.name)
    reached, waiting = set(names), list(names)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in reached:
                reached.add(caller)
                waiting.append(caller)
    return reached


def traits_of(module: Module) -> dict[Function, Traits]:
    found = module.memo.get("traits")
    if not isinstance(found, dict):
        found = module.memo["traits"] = _walk_traits(module)
    return found


def _walk_traits(module: Module) -> dict[Function, Traits]:
    """One walk over the file; what a nested function does is told to those around it."""
    found: dict[Function, Traits] = {}
    waiting: list[tuple[ast.AST, tuple[Traits, ...]]] = [(module.tree, ())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node] = Traits(is_backward_name(node.name))
            around = (*around, found[node])
        elif around:
            _note(node, around)
        waiting.extend((child, around) for child in ast.iter_child_nodes(node))
    return found


def _note(node: ast.AST, around: tuple[Traits, ...]) -> None:
    if isinstance(node, ast.Call):
        around[-1].hands = around[-1].hands or hands_gradients(node) or (around[-1].backward and runs_backward(node))
        names = {last_name(node.func), *(last_name(a) for a in node.args)}
        for traits in around:
            traits.calls |= names
    if isinstance(node, (ast.Attribute, ast.Name)) and MAKER.search(last_name(node)):
        for traits in around:
            traits.makes = True
    if isinstance(node, ast.With):
        around[-1].calls |= {last_name(i.context_expr.func) for i in node.items if isinstance(i.context_expr, ast.Call)}
    elif (isinstance(node, ast.Attribute) and node.attr == "grad" and last_name(node.value) not in MODULES) or (
        isinstance(node, ast.Constant) and node.value == "grad"
    ):
        for traits in around:
            traits.grads = True

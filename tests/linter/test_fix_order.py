"""No fix takes a gradient away: harvests in every spelling and place, run before and after `--fix`, compared bit for bit."""

from __future__ import annotations

import textwrap
from itertools import product
from typing import Any

import pytest

from lifetime.linter import fixer

torch = pytest.importorskip("torch")

CODES = ["LT001", "LT002", "LT005"]
HEAD = """\
import contextlib
import functools
import itertools
import torch


def look(*things):
    return [t.grad.sum() for t in torch.utils._pytree.tree_leaves(things) if t.grad is not None]


def total(grads):
    return sum(g.norm() for g in grads)


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log, *xs):
        ctx.log = log
        ctx.save_for_backward(*xs)
        return tuple((x * x).detach() for x in xs)

    @staticmethod
    def backward(ctx, *dys):
        log = ctx.log.append
        leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = [t * t for t in leaves]
        torch.autograd.backward(out, dys)
"""
SPELLINGS = {
    "comprehension": "tuple(t.grad for t in leaves)",
    "list": "[t.grad for t in leaves]",
    "map": "tuple(map(lambda t: t.grad, leaves))",
    "starred": "(*(t.grad for t in leaves),)",
    "conditional": "tuple(t.grad if t is not None else None for t in leaves)",
    "in a condition": "([t.grad for t in leaves] if leaves is not None else [])",
    "zip": "[t.grad for t, dy in zip(leaves, dys)]",
    "two": "(leaves[0].grad, leaves[1].grad)",
    "filter": "[t.grad for t in leaves if t.grad is not None and t.grad.sum() > -9]",
    "nested": "[g for g in [t.grad for t in leaves]]",
    "twice at once": "[[t.grad for t in leaves] for _ in range(2)][1]",
    "partial": "functools.partial(lambda ls: tuple(t.grad for t in ls), leaves)()",
    "tree": "torch.utils._pytree.tree_map(lambda t: t.grad, leaves)",
}
PLACES = {
    "return": "return (None, *{h})",
    "name": "gs = {h}\nreturn (None, *gs)",
    "lambda": "harvest = lambda: {h}\nreturn (None, *harvest())",
    "lambda, looked at twice": "harvest = lambda: {h}\nlog(total(harvest()))\nreturn (None, *harvest())",
    "inner function": "def harvest():\n    return {h}\nreturn (None, *harvest())",
    "inner function, called twice": "def harvest():\n    return {h}\nlog(total(harvest()))\nreturn (None, *harvest())",
    "inner function in a loop": "def harvest():\n    return {h}\nfor _ in range(2):\n    gs = harvest()\nreturn (None, *gs)",
    "inner function handed on": "def harvest():\n    return {h}\nfor f in (harvest, harvest):\n    gs = f()\nreturn (None, *gs)",
    "inner generator": "def harvest():\n    yield from {h}\nlog(total(harvest()))\nreturn (None, *harvest())",
    "loop": "for _ in range(2):\n    gs = {h}\nreturn (None, *gs)",
    "loop with else": "for _ in range(2):\n    gs = {h}\nelse:\n    log(total({h}))\nreturn (None, *gs)",
    "loop in a loop": "for _ in range(2):\n    for _ in range(2):\n        gs = {h}\nreturn (None, *gs)",
    "loop over views": "for i in range(2):\n    ls = list(leaves)\n    gs = {h}\nreturn (None, *gs)",
    "conditional in a loop": "for i in range(3):\n    if i:\n        gs = {h}\nreturn (None, *gs)",
    "while": "n = 0\nwhile n < 2:\n    gs = {h}\n    n += 1\nreturn (None, *gs)",
    "while true": "n = 0\nwhile True:\n    gs = {h}\n    n += 1\n    if n > 1:\n        break\nreturn (None, *gs)",
    "return from a loop": "for i in range(2):\n    gs = {h}\n    if i:\n        return (None, *gs)",
    "finally": "try:\n    return (None, *{h})\nfinally:\n    log(look(leaves))",
    "finally reads": "try:\n    gs = {h}\nfinally:\n    log(total(t.grad for t in leaves))\nreturn (None, *gs)",
    "except": "try:\n    gs = {h}\n    raise ValueError\nexcept ValueError:\n    gs = {h}\nreturn (None, *gs)",
    "with": "with contextlib.nullcontext():\n    gs = {h}\nreturn (None, *gs)",
    "end of a with": "with contextlib.ExitStack() as s:\n    s.callback(lambda: log(look(leaves)))\n    return (None, *{h})",
    "early return": "if len(leaves) > 9:\n    return None\ngs = {h}\nif len(gs) > 9:\n    return None\nreturn (None, *gs)",
    "branches": "if len(leaves) > 1:\n    gs = {h}\nelse:\n    gs = {h}\nreturn (None, *gs)",
    "short circuit": "gs = leaves and {h}\nreturn (None, *gs)",
    "head of an if": "if all(g is not None for g in {h}):\n    log(1)\ngs = {h}\nreturn (None, *gs)",
    "looked at later": "gs = {h}\nlog(total(t.grad for t in leaves))\nreturn (None, *gs)",
    "handed on later": "gs = {h}\nlog(look(leaves))\nreturn (None, *gs)",
    "handed on in a branch": "gs = {h}\nif len(gs) > 1:\n    log(look(leaves))\nreturn (None, *gs)",
    "generator made before": "late = (t.grad.sum() for t in leaves)\ngs = {h}\nlog(sum(late))\nreturn (None, *gs)",
    "lambda made before": "late = lambda: sum(t.grad.sum() for t in leaves)\ngs = {h}\nlog(late())\nreturn (None, *gs)",
    "function made before": "def late():\n    return look(leaves)\ngs = {h}\nlog(late())\nreturn (None, *gs)",
    "elements, all looked at": "gs = []\nfor t in leaves:\n    gs.append(t.grad)\n    log(sum(u.grad.sum() for u in leaves))\n"
    "log(len({h}))\nreturn (None, *gs)",
    "all handed on": "gs = []\nfor t in leaves:\n    gs.append(t.grad)\n    log(look(leaves))\nreturn (None, *gs)",
    "element twice": "gs = []\nfor t in leaves + leaves:\n    gs.append(t.grad)\nreturn (None, *gs[2:])",
    "name of a comprehension": "gs = []\nfor t in leaves:\n    gs.append(t.grad)\n    log([t.grad.sum() for t in leaves])\n"
    "return (None, *gs)",
    "walrus loop": "gs, it = [], iter(leaves)\nwhile (t := next(it, None)) is not None:\n    gs.append(t.grad)\nreturn (None, *gs)",
    "alias handed on": "ls = leaves\ngs = {h}\nfor n in range(1):\n    log(look(ls))\nreturn (None, *gs)",
    "default of a lambda": "late = lambda ls=leaves: look(ls)\ngs = {h}\nlog(late())\nreturn (None, *gs)",
    "bound": "late = functools.partial(look, leaves)\ngs = {h}\nlog(late())\nreturn (None, *gs)",
    "object": "class Late:\n    def look(self):\n        return look(leaves)\n"
    "late = Late()\ngs = {h}\nlog(late.look())\nreturn (None, *gs)",
    "rebound": "kept = leaves\nleaves = {h}\nlog(look(kept))\nreturn (None, *leaves)",
    "lazy": "gs = iter({h})\nreturn (None, *gs)",
}


def outcome(source: str) -> list[Any]:
    """The gradients and what was logged; the sort of failure where it fails."""
    names: dict[str, Any] = {}
    exec(compile(source, "generated.py", "exec"), names)
    xs = [torch.linspace(1, 2, 3, requires_grad=True), torch.linspace(-1, 3, 3, requires_grad=True)]
    log: list[Any] = []
    try:
        sum(y.sum() for y in names["F"].apply(log, *xs)).backward()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return [repr([None if x.grad is None else x.grad.tolist() for x in xs]), repr(log)]


def program(spelling: str, place: str) -> str:
    return HEAD + textwrap.indent(PLACES[place].replace("{h}", SPELLINGS[spelling]), " " * 8) + "\n"


def fix(source: str, unsafe: bool = False) -> str:
    return fixer.fix_source(source, "a.py", select=CODES, unsafe=unsafe)[0]


@pytest.mark.parametrize(("spelling", "place"), list(product(SPELLINGS, PLACES)))
def test_gradients_are_the_same(spelling: str, place: str) -> None:
    source = program(spelling, place)
    fixed = fix(source)
    assert fixed == source or outcome(fixed) == outcome(source), fixed


def test_harvests_that_are_surely_over_are_fixed() -> None:
    fixed = {place for place in PLACES if fix(program("list", place)) != program("list", place)}
    assert fixed >= {"return", "name", "inner function", "loop", "loop in a loop", "while true", "branches", "early return"}


def test_the_release_goes_behind_the_loop_that_reads_again() -> None:
    fixed = fix(program("list", "loop in a loop"))
    assert fixed.count(".grad = None") == 1
    assert "        for t in leaves:\n            t.grad = None\n        return (None, *gs)\n" in fixed


def test_a_helper_that_others_may_call_twice_is_fixed_only_on_demand() -> None:
    source = (
        "class Stage:\n    def forward(self, x):\n        self.leaf = x.detach().requires_grad_()\n"
        "        self.out = self.fn(self.leaf)\n        return self.out\n\n"
        "    def backward(self, dy):\n        self.out.backward(dy)\n        return self.collect()\n\n"
        "    def collect(self):\n        return self.leaf.grad\n"
    )
    assert fix(source) == source
    assert "self.leaf.grad = None" in fix(source, unsafe=True)
    private = source.replace("collect", "_collect")
    assert "self.leaf.grad = None" in fix(private)

"""Fixes of LT001 and LT002: where the release goes, and that the gradients stay what they were."""

from __future__ import annotations

import textwrap

import pytest

from lifetime.linter import fixer
from lifetime.linter.engine import check_source

HEAD = "import torch\n\n\n"


def fix(source: str) -> str:
    return fixer.fix_source(source, "a.py", select=["LT001", "LT002"], unsafe=True)[0]


def body(text: str) -> str:
    """A backward with `text` behind the run of the engine."""
    run = "    leaves = [x.detach().requires_grad_() for x in xs]\n    fn(*leaves).backward(dy)\n"
    return f"{HEAD}def backward(fn, xs, dy, log):\n{run}{textwrap.indent(textwrap.dedent(text), '    ')}"


CASES = {
    "behind the last read of the block": (
        "grads = [t.grad for t in leaves]\nlog(sum(t.grad.norm() for t in leaves))\nreturn grads\n",
        "grads = [t.grad for t in leaves]\nlog(sum(t.grad.norm() for t in leaves))\n"
        "for t in leaves:\n    t.grad = None\nreturn grads\n",
    ),
    "the guard of the harvest": (
        "return [None if t is None else t.grad for t in leaves]\n",
        "grads = [None if t is None else t.grad for t in leaves]\nfor t in leaves:\n    if t is not None:\n"
        "        t.grad = None\n"
        "return grads\n",
    ),
    "the filter of the harvest": (
        "return [t.grad for t in leaves if t.requires_grad]\n",
        "grads = [t.grad for t in leaves if t.requires_grad]\nfor t in leaves:\n    if t.requires_grad:\n        t.grad = None\n"
        "return grads\n",
    ),
    "only the leaves of a zip": (
        "out = {n: t.grad for n, t in zip(log.names, leaves)}\nreturn out\n",
        "out = {n: t.grad for n, t in zip(log.names, leaves)}\nfor t in leaves:\n    t.grad = None\nreturn out\n",
    ),
    "a walrus in the head of an if": (
        "found = []\nfor t in leaves:\n    if (g := t.grad) is not None:\n        found.append(g)\nreturn found\n",
        "found = []\nfor t in leaves:\n    if (g := t.grad) is not None:\n        found.append(g)\n    t.grad = None\n"
        "return found\n",
    ),
    "comments and layout stay": (
        "return (  # the gradients\n    None,\n    *(t.grad for t in leaves),  # all of them\n)\n",
        "grads = (  # the gradients\n    None,\n    *(t.grad for t in leaves),  # all of them\n)\n"
        "for t in leaves:\n    t.grad = None\nreturn grads\n",
    ),
    "a name that is taken is not used": (
        "grads = input_grads = None\nreturn [t.grad for t in leaves], grads, input_grads\n",
        "grads = input_grads = None\nresult = [t.grad for t in leaves], grads, input_grads\nfor t in leaves:\n    t.grad = None\n"
        "return result\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_the_release_goes(before: str, after: str) -> None:
    assert fix(body(before)) == body(after)


NO_FIX = {
    "a lazy map": "return map(lambda t: t.grad, leaves)\n",
    "a generator that is handed on": "return (t.grad for t in leaves)\n",
    "the head of a while": "while leaves[0].grad is not None and leaves[0].grad.sum() > 0:\n    log(leaves)\nreturn None\n",
    "two statements on a line": "grads = [t.grad for t in leaves]; return grads\n",
}


@pytest.mark.parametrize("text", NO_FIX.values(), ids=NO_FIX)
def test_no_fix_where_the_place_is_not_sure(text: str) -> None:
    found = check_source(body(text), "a.py", select=["LT001"])
    assert found and all(f.fix is None for f in found)
    assert fix(body(text)) == body(text)


def test_crlf_stays_crlf() -> None:
    source = body("return [t.grad for t in leaves]\n").replace("\n", "\r\n")
    fixed = fix(source)
    assert fixed.count("\r\n") == fixed.count("\n") == source.count("\n") + 3


RUN = HEAD + textwrap.dedent(
    """
    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, fn, keep, *xs):
            ctx.fn, ctx.keep = fn, keep
            ctx.save_for_backward(*xs)
            with torch.no_grad():
                return fn(*xs)

        @staticmethod
        def backward(ctx, dy):
            leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]
            with torch.enable_grad():
                out = ctx.fn(*leaves)
            ctx.keep.append(out)
            torch.autograd.backward(out, dy)
            return None, None, *(t.grad for t in leaves)
    """
)


def test_gradients_stay_bit_for_bit_and_the_leaves_are_released() -> None:
    torch = pytest.importorskip("torch")
    fixed = fix(RUN)
    assert "t.grad = None" in fixed
    results = []
    for source in (RUN, fixed):
        names: dict[str, object] = {}
        exec(compile(source, "replay.py", "exec"), names)
        torch.manual_seed(0)
        xs = [torch.randn(8, 8, requires_grad=True) for _ in range(2)]
        keep: list[object] = []
        names["Replay"].apply(lambda a, b: (a @ b).tanh(), keep, *xs).sum().backward()  # type: ignore[attr-defined]
        node = keep[0].grad_fn.next_functions[0][0]  # type: ignore[attr-defined]
        held = [n.variable.grad is not None for n, _ in node.next_functions]
        results.append(([x.grad for x in xs], held))
    (before, kept), (after, released) = results
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert all(kept) and not any(released)


LOCAL_IMPORT = """
import torch


def forward(fn, x):
    from megatron.core.transformer.cuda_graphs import is_graph_capturing, is_graph_warmup

    return None if is_graph_capturing() or is_graph_warmup() else fn(x)


def backward(fn, x, dy):
    leaf = x.detach().requires_grad_()
    fn(leaf).backward(dy)
    dx = leaf.grad{release}
    return dx
"""


@pytest.mark.parametrize("release", ["", "\n    leaf.grad = None"], ids=["LT001", "LT002"])
def test_the_guard_brings_its_import_as_the_file_has_it(release: str) -> None:
    black = pytest.importorskip("black")
    fixed = fix(LOCAL_IMPORT.format(release=release).lstrip())
    tail = (
        "    dx = leaf.grad\n    from megatron.core.transformer.cuda_graphs import is_graph_capturing\n\n"
        "    if not is_graph_capturing():\n        leaf.grad = None\n    return dx\n"
    )
    assert fixed.endswith(tail)
    assert black.format_str(fixed, mode=black.Mode(line_length=100)) == fixed

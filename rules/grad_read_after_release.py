"""LT005: `.grad` is read after it was released."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.flow.flow import flow
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule

RUN = "def backward(fn, xs, dy):\n    leaves = [x.detach().requires_grad_() for x in xs]\n    fn(*leaves).backward(dy)\n"
TAKEN = RUN + "    grads = [t.grad for t in leaves]\n    for t in leaves:\n        t.grad = None\n"


class GradReadAfterRelease(Rule):
    """LT005: `.grad` of leaves is read after the same function has released it.

    Why: after `leaf.grad = None` the read yields None. Either the release came too early, and a gradient is lost without an
    error, or the read is a leftover (a norm for the log, a check) that quietly tests nothing.

    Fix safety: no fix. Whether the release or the read has to move is for the author to say.

    Source: torch 2.13; a release is what LT001 counts as one. Only the order inside one function and the helpers it calls is
    judged.
    """

    code = "LT005"
    name = "grad-read-after-release"
    needles = ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]"))
    bad = (
        Bad(TAKEN + "    norm = sum(t.grad.norm() for t in leaves)\n    return grads, norm\n", (7,)),
        Bad(
            "def release(leaf):\n    leaf.grad = None\n\n\ndef backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n"
            "    fn(leaf).backward(dy)\n    release(leaf)\n    return leaf.grad\n",
            (9,),
        ),
    )
    good = (
        Good(TAKEN + "    assert all(t.grad is None for t in leaves)\n    return grads\n", "a test for None reads no gradient"),
        Good(
            "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    y = fn(leaf)\n"
            "    y.backward(dy, retain_graph=True)\n"
            "    first = leaf.grad\n    leaf.grad = None\n    y.backward(dy)\n    second = leaf.grad\n    leaf.grad = None\n"
            "    return first, second\n",
            "a second backward fills it again",
            also=("LT010",),
        ),
        Good(
            TAKEN + "    leaves = fn.heads\n    return grads, [t.grad for t in leaves]\n", "the name stands for other tensors now"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        lines: set[int] = set()
        for node, _ in flow(module).late:
            if node.lineno not in lines:
                lines.add(node.lineno)
                yield self.finding(module, node, "`.grad` was released before: this reads None")

"""LT003: a release whose comment does not say what keeps the leaf."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.flow.flow import flow
from lifetime.linter.flow.machine import Release
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.remarks import names_holder, remark
from lifetime.linter.rule import Bad, Good, Rule

RUN = (
    "def backward(fn, xs, dy):\n    leaves = [x.detach().requires_grad_() for x in xs]\n    fn(*leaves).backward(dy)\n"
    "    grads = [t.grad for t in leaves]\n"
)
LOOP = "    for t in leaves:\n        t.grad = None\n    return grads\n"


class UnnamedHolder(Rule):
    """LT003: the comment on a release names no holder of the leaf.

    Why: a release is dead code unless something keeps the leaf beyond the call. The next reader can check a name
    (`MTPBlock.embedding_cache`, the closure `pack`), and cannot check "avoids a leak": so nobody will dare to remove the
    release once the holder is gone. `lifetime trace` finds the holder and `lifetime comment` writes the sentence. A release
    without any comment is not judged.

    Fix safety: no fix. Only a run knows the holder.

    Source: review of Megatron-LM issue 6339.
    """

    code = "LT003"
    name = "unnamed-holder"
    needles = ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"#"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]", rb"#"))
    bad = (
        Bad(RUN + "    # free memory, see #1234\n" + LOOP, (7,)),
        Bad(RUN + "    for t in leaves:  # something still refers to the leaves\n        t.grad = None\n    return grads\n", (6,)),
        Bad(
            "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n    dx = leaf.grad\n"
            "    leaf.grad = None  # `leaf` is not needed any more\n    return dx\n",
            (5,),
        ),
    )
    good = (
        Good(
            RUN + "    # MTPBlock.embedding_cache keeps leaves[0] until the next step.\n" + LOOP,
            "an attribute of a class is named",
        ),
        Good(
            RUN + "    for t in leaves:  # kept by the closure `pack`\n        t.grad = None\n    return grads\n",
            "a closure is named",
        ),
        Good(RUN + LOOP, "no comment at all is not judged"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for release, walk in flow(module).releases:
            node = release.node
            statement = next((n for n in [node, *module.ancestors(node)] if isinstance(n, ast.stmt)), None)
            if statement is None or not isinstance(node, (ast.expr, ast.stmt)):
                continue
            comment = remark(module, *_around(module, statement, release))
            if comment and not names_holder(comment, walk.machine.events.holding):
                yield self.finding(module, node, "the comment on this release names nothing that keeps the leaf")


def _around(module: Module, statement: ast.stmt, release: Release) -> list[ast.stmt]:
    """The clear, its loop, and what lies between them."""
    found = [statement]
    if isinstance(release.loop, ast.stmt):
        for outer in module.ancestors(statement):
            if isinstance(outer, ast.stmt):
                found.insert(0, outer)
            if outer is release.loop:
                return found
    around = module.parents.get(statement)
    if isinstance(around, ast.If) and around.body == [statement]:
        found.insert(0, around)
    return found

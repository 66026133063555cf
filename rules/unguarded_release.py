"""LT002: leaves are released while a CUDA graph may be captured."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.capture import capture
from lifetime.linter.flow.flow import flow
from lifetime.linter.guard_fix import guard_fix
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule

RUN = (
    "from torch.cuda import is_current_stream_capturing\n\n\ndef backward(fn, xs, dy):\n"
    "    leaves = [x.detach().requires_grad_() for x in xs]\n    fn(*leaves).backward(dy)\n    grads = [t.grad for t in leaves]\n"
)
GRAPHED = (
    "import torch\n\n\ndef capture(step, x):\n    graph = torch.cuda.CUDAGraph()\n    with torch.cuda.graph(graph):\n"
    "        step(x)\n"
    "    return graph\n\n\ndef backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n"
    "    dx = leaf.grad\n"
)


class UnguardedRelease(Rule):
    """LT002: a release of leaves can run during CUDA-graph capture, in a file that knows capture, without a guard.

    Why: under capture the returned gradients become the last owner of their blocks in the capture pool. Once they die, the pool
    may hand the block to a later kernel of the same graph, and a replay writes over what somebody still reads. Code that takes
    part in captures keeps the `.grad` there: `if not is_graph_capturing():`.

    Fix safety: safe. The fix puts the release, or the loop that does nothing else, under the query that the file itself uses;
    outside capture nothing changes. No fix for a release that is part of another statement (a swap).

    Source: Megatron-LM, `megatron/core/transformer/cuda_graphs.py`; torch 2.13, `torch.cuda.is_current_stream_capturing`.
    """

    code = "LT002"
    name = "unguarded-release"
    needles = (
        (rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"[cC]aptur|CUDAGraph|cuda\.graph\(|make_graphed_callables"),
        (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]", rb"[cC]aptur|CUDAGraph|cuda\.graph\(|make_graphed_callables"),
    )
    bad = (
        Bad(
            RUN + "    for t in leaves:\n        t.grad = None\n    return grads\n",
            (9,),
            RUN + "    if not is_current_stream_capturing():\n        for t in leaves:\n            t.grad = None\n"
            "    return grads\n",
        ),
        Bad(
            GRAPHED + "    leaf.grad = None\n    return dx\n",
            (15,),
            GRAPHED + "    if not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):\n"
            "        leaf.grad = None\n    return dx\n",
        ),
        Bad(
            "from torch.cuda import is_current_stream_capturing\n\n\ndef take(t):\n    grad, t.grad = t.grad, None\n"
            "    return grad\n\n\n"
            "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n"
            "    return take(leaf)\n",
            (5,),
        ),
    )
    good = (
        Good(
            RUN + "    if not is_current_stream_capturing():\n        for t in leaves:\n            t.grad = None\n"
            "    return grads\n",
            "the release asks first",
        ),
        Good(
            RUN + "    if is_current_stream_capturing():\n        return grads\n    for t in leaves:\n        t.grad = None\n"
            "    return grads\n",
            "under capture the function has returned before",
        ),
        Good(
            "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n    dx = leaf.grad\n"
            "    leaf.grad = None  # fine while capturing, too\n    return dx\n",
            "a comment does not make the file take part in captures",
            also=("LT003",),
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        releases = [release for release, _ in flow(module).releases if release.ran and not release.guarded]
        knows = capture(module) if releases else None
        for release in releases if knows else ():
            message = f"this release can run during CUDA-graph capture (the file knows it: {knows.what if knows else ''})"
            yield self.finding(module, release.node, message, fix=guard_fix(module, release))

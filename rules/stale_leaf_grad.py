"""LT011: an unreleased leaf that the next backward gets again, so that its gradient is added up."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.flow.escape import is_reachable_again
from lifetime.linter.flow.flow import flow
from lifetime.linter.leak_fix import leak_fix
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule

SAVED = (
    "import torch\n\n\nclass Split(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, fn, x):\n"
    "        leaf = x.detach().requires_grad_()\n        with torch.enable_grad():\n            ctx.out = [fn(leaf)]\n"
    "        ctx.save_for_backward(leaf)\n        return ctx.out[0].detach()\n\n    @staticmethod\n    def backward(ctx, dy):\n"
    "        (leaf,) = ctx.saved_tensors\n        torch.autograd.backward(ctx.out, dy, retain_graph=True)\n"
)
STAGE = (
    "class Stage:\n    def forward(self, x):\n        self.leaf = x.detach().requires_grad_()\n"
    "        self.out = self.module(self.leaf)\n"
    "        return self.out.detach()\n\n    def backward(self, dy):\n        self.out.backward(dy)\n"
)


class StaleLeafGrad(Rule):
    """LT011: an unreleased leaf is reachable by a later backward, whose gradient is then added to the old one.

    Why: autograd adds into `.grad`. A leaf that lies in `saved_tensors`, on ctx or on self is the same object in the next
    backward through the same graph (`retain_graph=True`, a second micro-batch on the same node), and what is harvested then is
    the sum of both: 4 where 2 is right. It stands beside LT001, which speaks of the memory.

    Fix safety: as for LT001. The fix changes what a second backward returns: that is its purpose.

    Source: torch 2.13, `torch/csrc/autograd/functions/accumulate_grad.h`; measured with a Function that saves its leaf.
    """

    code = "LT011"
    name = "stale-leaf-grad"
    needles = ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]"))
    bad = (
        Bad(
            SAVED + "        return None, leaf.grad\n",
            (17,),
            SAVED + "        grads = None, leaf.grad\n"
            "        # ctx.saved_tensors can keep these leaves, and their .grad, alive.\n"
            "        leaf.grad = None\n        return grads\n",
            also=("LT001",),
        ),
        Bad(
            STAGE + "        return self.leaf.grad\n",
            (9,),
            STAGE + "        grads = self.leaf.grad\n"
            "        # self.leaf can keep these leaves, and their .grad, alive.\n"
            "        self.leaf.grad = None\n        return grads\n",
            also=("LT001",),
        ),
    )
    good = (
        Good(
            STAGE + "        grads = self.leaf.grad\n        self.leaf = None\n        return grads\n",
            "the next backward cannot get this leaf again; that it may stay alive is LT001",
            also=("LT001",),
        ),
        Good(
            STAGE + "        grads, self.leaf.grad = self.leaf.grad, None\n        return grads\n",
            "the gradient is taken off the leaf",
        ),
        Good(
            "def backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n    return leaf.grad\n",
            "a leaf made in this call is not met again",
            also=("LT001",),
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for leak in flow(module).leaks:
            place = is_reachable_again(leak)
            if place:
                message = f"the leaf lies in `{place}`: a second backward adds to this `.grad` and its gradient is wrong"
                yield self.finding(module, leak.node, message, fix=leak_fix(module, leak), evidence={"reachable": place})

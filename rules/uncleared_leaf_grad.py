"""LT001: the gradient of a detached leaf is handed on and stays on the leaf."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.capture import capture
from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak, flow
from lifetime.linter.flow.readers import readers
from lifetime.linter.leak_fix import leak_fix
from lifetime.linter.model import Finding, Severity
from lifetime.linter.module import Module
from lifetime.linter.release_plan import leaves_text
from lifetime.linter.rule import Bad, Good, Rule

HEAD = (
    "import torch\n\n\nclass Recompute(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, fn, *xs):\n"
    "        ctx.fn = fn\n        ctx.save_for_backward(*xs)\n        return fn(*xs)\n\n"
    "    @staticmethod\n    def backward(ctx, *dys):\n"
    "        leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]\n        with torch.enable_grad():\n"
    "            torch.autograd.backward(ctx.fn(*leaves), dys)\n"
)
STAGE = (
    "import torch\n\n\nclass Stage:\n    def forward(self, x):\n        self.leaf = x.detach().requires_grad_()\n"
    "        self.out = self.module(self.leaf)\n        return self.out.detach()\n\n"
    "    def backward(self, dy):\n        torch.autograd.backward(self.out, dy)\n"
)
GRAPHED = (
    "import torch\nfrom torch.cuda import is_current_stream_capturing\n\n\ndef backward(fn, x, dy):\n"
    "    leaf = x.detach().requires_grad_()\n    fn(leaf).backward(dy)\n"
)


class UnclearedLeafGrad(Rule):
    """LT001: a backward harvests `.grad` of detached leaves and never releases it.

    Why: a backward that recomputes runs forward again on detached leaves, lets autograd fill their `.grad`, hands these
    gradients on and returns. If anything keeps a leaf (the function that was run again and keeps its graph, a cache, ctx), its
    `.grad` keeps a full copy of the segment's input gradients until that holder dies. It also costs a copy, because the outer
    AccumulateGrad cannot adopt a buffer that somebody else holds, and a second backward through the same leaf adds to what is
    there. `leaf.grad = None` after the harvest ends all three.

    The severity is `note` where nothing in the source keeps the leaf, so that only the function that is run again could
    (`lifetime trace` shows whether it does), and `warning` where the source itself shows how the leaf gets out.

    Fix safety: the release goes behind the harvest, over the very leaves. It is safe when no other `.grad` read in the
    function, the class, the file or the package may see the same leaves (they are listed), and unsafe where one may, where the
    leaves are published (LT006) or where the caller owns them. There is no fix where the harvest is lazy or stands in the head
    of a compound statement.

    Source: Megatron-LM pull requests 6117 and 6339; torch 2.13, `torch/csrc/autograd/functions/accumulate_grad.h` (when a
    gradient is adopted).
    """

    code = "LT001"
    name = "uncleared-leaf-grad"
    needles = ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]"))
    bad = (
        Bad(
            HEAD + "        return (None, *(t.grad for t in leaves))\n",
            (16,),
            HEAD + "        grads = (None, *(t.grad for t in leaves))\n        for t in leaves:\n            t.grad = None\n"
            "        return grads\n",
        ),
        Bad(
            STAGE + "        dx = self.leaf.grad\n        return dx\n",
            (12,),
            STAGE + "        dx = self.leaf.grad\n        # self.leaf can keep these leaves, and their .grad, alive.\n"
            "        self.leaf.grad = None\n        return dx\n",
            also=("LT011",),
        ),
        Bad(
            GRAPHED + "    return leaf.grad * 2\n",
            (8,),
            GRAPHED + "    grads = leaf.grad * 2\n    if not (torch.cuda.is_available() and is_current_stream_capturing()):\n"
            "        leaf.grad = None\n    return grads\n",
        ),
        Bad(
            "def backward(fn, xs, dy, send):\n    leaves = [x.detach().requires_grad_() for x in xs]\n"
            "    fn(*leaves).backward(dy)\n"
            "    for leaf in leaves:\n        send(leaf.grad)\n    leaves.clear()\n",
            (5,),
            "def backward(fn, xs, dy, send):\n    leaves = [x.detach().requires_grad_() for x in xs]\n"
            "    fn(*leaves).backward(dy)\n"
            "    for leaf in leaves:\n        send(leaf.grad)\n        leaf.grad = None\n    leaves.clear()\n",
        ),
    )
    good = (
        Good(
            HEAD + "        grads = [t.grad for t in leaves]\n        for t in leaves:\n            t.grad = None\n"
            "        return (None, *grads)\n",
            "every leaf is released before the only return",
        ),
        Good(
            "import torch\n\n\ndef backward(fn, x, dy):\n    leaf = x.detach().requires_grad_()\n"
            "    return torch.autograd.grad(fn(leaf), leaf, dy)\n",
            "autograd.grad fills no .grad",
        ),
        Good(
            "def fgsm(model, x, y, loss_fn):\n    adv = x.detach().requires_grad_()\n    loss_fn(model(adv), y).backward()\n"
            "    return x + adv.grad.sign()\n",
            "the backward of a loss, not a piece of a larger backward",
        ),
        Good(
            "def backward(layer, x, dy):\n    layer(x).backward(dy)\n    return [p.grad for p in layer.parameters()]\n",
            "gradients of parameters belong to the optimizer",
        ),
        Good(
            "def take(t):\n    grad, t.grad = t.grad, None\n    return grad\n\n\ndef backward(fn, xs, dy):\n"
            "    leaves = [x.detach().requires_grad_() for x in xs]\n    fn(*leaves).backward(dy)\n"
            "    return [take(t) for t in leaves]\n",
            "the helper releases what it takes",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for leak in flow(module).leaks:
            how = escape(leak)
            found = readers(module, leak)
            knows = capture(module)
            evidence = {
                "leaves": leaves_text(module, leak.leaves),
                "readers": [vars(reader) for reader in found],
                "capture": f"{knows.what} (line {knows.line})" if knows else None,
                "escape": how,
            }
            fix = leak_fix(module, leak, found)
            severity = Severity.NOTE if how == CALLEE else Severity.WARNING
            yield self.finding(module, leak.node, _message(module, leak, how), fix=fix, severity=severity, evidence=evidence)


def _message(module: Module, leak: Leak, how: str) -> str:
    leaves = leaves_text(module, leak.leaves)[:40]
    holder = {CALLEE: "whatever the re-run function keeps", CALLER: "the caller"}.get(how, f"`{how}`")
    return f"`.grad` of `{leaves}` is harvested and never released: {holder} can keep it alive"

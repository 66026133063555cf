"""LT004: tensors kept as plain attributes of an autograd Function's ctx."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.autograd_function import AutogradFunction, autograd_functions, dropped
from lifetime.linter.ctx_stores import Stored, stores
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.save_fix import save_for_backward
from lifetime.linter.study import study

HEAD = "import torch\n\n\nclass F(torch.autograd.Function):\n    @staticmethod\n"
BACK = "\n    @staticmethod\n    def backward(ctx, grad):\n"


class TensorOnCtx(Rule):
    """LT004: a tensor is kept as a plain attribute of ctx instead of by `save_for_backward`.

    Why: ctx is the node of the graph. An output kept on it closes the ring ctx -> output -> grad_fn -> ctx, and everything behind that node
    stays until Python's collector comes by, which large trainers switch off. Any other tensor kept on ctx is not released by
    backward, as a saved tensor is: it stays as long as the loss does, and no version counter notices a change in place.

    Fix safety: inputs and outputs that are stored once, by name, and only read in backward go to `save_for_backward`. Safe for outputs. Unsafe for
    inputs: a saved input that somebody changes in place between forward and backward, as an optimizer does to a weight under
    an asynchronous pipeline, raises where the attribute silently gave the new value. None for intermediates and conditional stores.

    Source: torch 2.13, `torch/csrc/autograd/python_function.cpp` (saved variables are released, `__dict__` is not), the notes "Extending PyTorch".
    """

    code = "LT004"
    name = "tensor-on-ctx"
    default = False
    needles = ((rb"\bFunction\s*\)", rb"\bautograd\b", rb"\bdef (?:forward|setup_context)\b"),)
    bad = (
        Bad(
            HEAD
            + "    def forward(ctx, x):\n        out = torch.exp(x)\n        ctx.out = out\n        return out\n"
            + BACK
            + "        return grad * ctx.out\n",
            (8,),
            HEAD
            + "    def forward(ctx, x):\n        out = torch.exp(x)\n        ctx.save_for_backward(out)\n        return out\n"
            + BACK
            + "        (out,) = ctx.saved_tensors\n        return grad * out\n",
        ),
        Bad(
            HEAD
            + "    def forward(ctx, x, weight):\n        ctx.weight = weight\n        ctx.save_for_backward(x)\n        return x @ weight\n"
            + BACK
            + "        (x,) = ctx.saved_tensors\n        return grad @ ctx.weight.t(), x.t() @ grad\n",
            (7,),
            HEAD
            + "    def forward(ctx, x, weight):\n        ctx.save_for_backward(x, weight)\n        return x @ weight\n"
            + BACK
            + "        x, weight = ctx.saved_tensors\n        return grad @ weight.t(), x.t() @ grad\n",
        ),
        Bad(
            HEAD
            + "    def forward(ctx, x):\n        keep = x > 0\n        ctx.keep = keep\n        return x * keep\n"
            + BACK
            + "        return grad * ctx.keep\n",
            (8,),
        ),
        Bad(
            HEAD
            + "    def forward(ctx, *inputs: torch.Tensor):\n        ctx.inputs = inputs\n        return sum(inputs)\n"
            + BACK
            + "        return tuple(grad.expand_as(x) for x in ctx.inputs)\n",
            (7,),
        ),
        Bad(
            HEAD
            + "    def forward(x, n):\n        return x**n\n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n"
            + "        x, ctx.n = inputs\n        ctx.x = x\n        ctx.y = output\n"
            + BACK
            + "        return grad * ctx.n * ctx.y / ctx.x, None\n",
            (12, 13),
            HEAD
            + "    def forward(x, n):\n        return x**n\n\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n"
            + "        x, ctx.n = inputs\n        ctx.save_for_backward(x, output)\n"
            + BACK
            + "        x, output = ctx.saved_tensors\n        return grad * ctx.n * output / x, None\n",
        ),
        Bad(
            HEAD
            + "    def forward(context, x):\n        kept = []\n        context.kept = kept\n        for _ in range(3):\n"
            + "            x = torch.tanh(x)\n            kept.append(x)\n        return x * 2\n\n    @staticmethod\n"
            + "    def backward(context, grad):\n        for y in reversed(context.kept):\n            grad = grad * (1 - y * y)\n        return 2 * grad\n",
            (8,),
        ),
    )
    good = (
        Good(
            HEAD
            + "    def forward(ctx, x, dim):\n        ctx.shape, ctx.dtype, ctx.dim = x.shape, x.dtype, dim\n        ctx.top = x.max().item()\n"
            + "        return x.sum(dim)\n"
            + BACK
            + "        return grad.unsqueeze(ctx.dim).expand(ctx.shape), None\n",
            "shapes, dtypes and numbers",
        ),
        Good(
            HEAD
            + "    def forward(ctx, x):\n        ctx.x = x\n        return x**3\n"
            + BACK
            + "        x, ctx.x = ctx.x, None\n        return grad * 3 * x * x\n",
            "backward gives the input up itself, on its only way through",
        ),
        Good(
            HEAD
            + "    def forward(ctx, run, *args):\n        ctx.args = args\n        return run(*args)\n"
            + BACK
            + "        return None, *ctx.args\n",
            "nothing says that the arguments are tensors",
        ),
        Good(
            HEAD
            + "    def forward(ctx, x):\n        ctx.rng = torch.get_rng_state()\n        return x * torch.rand_like(x)\n"
            + BACK
            + "        torch.set_rng_state(ctx.rng)\n        return grad * torch.rand_like(grad)\n",
            "a random generator's state has no graph and gets no gradient",
        ),
        Good(
            "class Request:\n    def forward(self, ctx, x):\n        out = x.exp()\n        ctx.out = out\n        return out\n",
            "another class's ctx is no node of a graph",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        for function in autograd_functions(module, facts.imports):
            found = [s for s in stores(module, facts, function) if s.is_output or s.attribute not in dropped(function)]
            fix = save_for_backward(module, function, found) if function.backward else None
            for stored in found:
                yield self.finding(module, stored.target, self.message(function, stored), fix=fix)
                fix = None

    @staticmethod
    def message(function: AutogradFunction, stored: Stored) -> str:
        where = f"{function.ctx}.{stored.attribute}"
        if stored.is_output:
            return (
                f"`{where}` holds an output of {function.node.name}: the node, its output and the output's grad_fn form a cycle"
            )
        return f"`{where}` holds a tensor that backward does not release: use save_for_backward"

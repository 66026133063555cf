"""LT008: backward with create_graph=True, which ties every parameter to its gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.backward_calls import Receivers, flag, second_order_fix
from lifetime.linter.blocks import statement_of
from lifetime.linter.grad_release import covers, released
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.study import study

MESSAGE = (
    "backward with create_graph=True leaves each parameter and its .grad in a C++ cycle that gc never frees; use autograd.grad"
)


class CreateGraphBackward(Rule):
    """LT008: `backward(create_graph=True)` makes each parameter and its `.grad` keep each other alive.

    Why: with `create_graph=True` the gradient that is stored in `p.grad` has a graph of its own, and that graph leads back to `p`: p -> p.grad
    -> grad_fn -> AccumulateGrad -> p, all in C++, so that not even `gc.collect()` frees it. torch warns about it once a process.
    `torch.autograd.grad(loss, params, create_graph=True)` returns the gradients and stores none. A `zero_grad()` at the top of a loop
    comes too late for the last step.

    Fix safety: the fix sets the `.grad` fields to None where the block ends, as torch's own warning advises. It is unsafe, because code that runs
    later may want to read them; where that is so, `torch.autograd.grad` is the way out. No fix where the owner of the parameters is not
    known, or where the function still reads `.grad` afterwards.

    Source: torch 2.13, `torch/csrc/autograd/engine.cpp` (the warning) and `torch/autograd/__init__.py`; measured: the cycle survives `gc.collect()`.
    """

    code = "LT008"
    name = "create-graph-backward"
    needles = ((rb"\bbackward\s*\(", rb"create_graph\s*=\s*True"),)
    bad = (
        Bad(
            "def train(model, optimizer, batches):\n    for x, y in batches:\n        optimizer.zero_grad()\n"
            "        loss = (model(x) - y).pow(2).mean()\n        loss.backward(create_graph=True)\n        optimizer.step()\n",
            (5,),
            "def train(model, optimizer, batches):\n    for x, y in batches:\n        optimizer.zero_grad()\n"
            "        loss = (model(x) - y).pow(2).mean()\n        loss.backward(create_graph=True)\n        optimizer.step()\n"
            "        optimizer.zero_grad()\n",
        ),
        Bad(
            "import torch\n\n\ndef curvature(model, x):\n    torch.autograd.backward(model(x).sum(), create_graph=True)\n"
            "    params = list(model.parameters())\n"
            "    (h, *_) = torch.autograd.grad([p.grad for p in params], params, params)\n    return h.sum().item()\n",
            (5,),
            "import torch\n\n\ndef curvature(model, x):\n    torch.autograd.backward(model(x).sum(), create_graph=True)\n"
            "    params = list(model.parameters())\n"
            "    (h, *_) = torch.autograd.grad([p.grad for p in params], params, params)\n"
            "    for param in model.parameters():\n        param.grad = None\n    return h.sum().item()\n",
        ),
        Bad(
            "def penalty(critic, other, x):\n    loss = critic(x).mean()\n    loss.backward(create_graph=True)\n"
            "    for p in other.parameters():\n        p.grad = None\n",
            (3,),
        ),
    )
    good = (
        Good("def step(model, x):\n    model(x).sum().backward(create_graph=False)\n", "no second graph is made"),
        Good(
            "import torch\n\n\ndef inner(model, x):\n"
            "    return torch.autograd.grad(model(x).sum(), list(model.parameters()), create_graph=True)\n",
            "autograd.grad stores nothing in .grad",
        ),
        Good(
            "def penalty(model, x):\n    model(x).sum().backward(create_graph=True)\n    total = sum(p.grad.norm() for p in model.parameters())\n"
            "    for p in model.parameters():\n        p.grad = None\n    return total\n",
            "the .grad fields are given up on every way out, as torch's warning advises",
        ),
        Good(
            "class Scaler:\n    def backward(self, loss, params, create_graph=False):\n        return loss, params, create_graph\n\n\n"
            "def step(scaler: Scaler, loss, params):\n    return scaler.backward(loss, params, create_graph=True)\n",
            "this backward is the file's own",
        ),
        Good(
            "def step(loss, order):\n    loss.backward(create_graph=order > 1)\n",
            "whether a second graph is wanted is decided at run time",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        receivers = Receivers(module, facts)
        for call in receivers.calls():
            scope = module.enclosing_function(call) or module.tree
            statement = statement_of(module, call)
            if flag(call, "create_graph") is not True or statement is None or not receivers.is_torch(call, scope):
                continue
            used = receivers.modules_behind(call, scope)
            if not covers(released(module, scope, statement), used):
                fix = second_order_fix(module, scope, statement, used & receivers.known_modules(scope))
                yield self.finding(module, call, MESSAGE, fix=fix)

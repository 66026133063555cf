"""LT010: retain_graph=True on the only backward that its graph will see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.argument_fix import without_keyword
from lifetime.linter.backward_calls import Receivers, flag
from lifetime.linter.model import Finding, Fix, Safety
from lifetime.linter.module import Module
from lifetime.linter.retention import used_once
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.study import study

MESSAGE = "no second backward can go through this graph: retain_graph=True only keeps its saved tensors alive longer"
REASON = "a module that keeps a part of its last graph on itself would need the flag, and raises without it"


class RetainedGraph(Rule):
    """LT010: `retain_graph=True` on a graph that nothing back-propagates again.

    Why: backward frees what the forward saved while it walks the graph, so that the peak falls as it goes. With `retain_graph=True`
    everything saved lives until the last reference to the loss is rebound, which in a loop is after the next forward: two steps'
    saved tensors at once. The flag is needed only where the same graph is walked again: another loss over a shared trunk, a
    second call on the same output, a state carried over iterations. A second forward makes another graph.

    Fix safety: dropping the flag is unsafe because a module may keep a part of its graph on itself (a hidden state that is
    not detached), which this file does not show; the next backward then raises "Trying to backward through the graph a second
    time", so a wrong fix is loud.

    Source: torch 2.13, `torch/csrc/autograd/engine.cpp` (`release_variables` unless `keep_graph`).
    """

    code = "LT010"
    name = "retained-graph"
    needles = ((rb"retain_graph\s*=\s*True",),)
    bad = (
        Bad(
            "import torch.nn.functional as F\n\n\ndef train(model, loader, optimizer):\n    for x, y in loader:\n"
            "        optimizer.zero_grad()\n        loss = F.mse_loss(model(x), y)\n"
            "        loss.backward(retain_graph=True)\n        optimizer.step()\n",
            (8,),
            "import torch.nn.functional as F\n\n\ndef train(model, loader, optimizer):\n    for x, y in loader:\n"
            "        optimizer.zero_grad()\n        loss = F.mse_loss(model(x), y)\n"
            "        loss.backward()\n        optimizer.step()\n",
        ),
        Bad(
            "import torch\n\n\ndef saliency(model, x):\n    x = x.detach().requires_grad_()\n    score = model(x).sum()\n"
            "    (slope,) = torch.autograd.grad(score, x, retain_graph=True)\n    return slope.abs()\n",
            (7,),
            "import torch\n\n\ndef saliency(model, x):\n    x = x.detach().requires_grad_()\n    score = model(x).sum()\n"
            "    (slope,) = torch.autograd.grad(score, x)\n    return slope.abs()\n",
        ),
        Bad(
            "def gan(d, g, real, z):\n    fake = g(z)\n    d_loss = d(fake.detach()).mean() - d(real).mean()\n"
            "    d_loss.backward(retain_graph=True)\n    g_loss = -d(fake).mean()\n    g_loss.backward()\n",
            (4,),
            "def gan(d, g, real, z):\n    fake = g(z)\n    d_loss = d(fake.detach()).mean() - d(real).mean()\n"
            "    d_loss.backward()\n    g_loss = -d(fake).mean()\n    g_loss.backward()\n",
        ),
        Bad(
            "def two(model, x, y):\n    out = model(x)\n    out.mean().backward(retain_graph=True)\n    out.std().backward(retain_graph=True)\n",
            (4,),
            "def two(model, x, y):\n    out = model(x)\n    out.mean().backward(retain_graph=True)\n    out.std().backward()\n",
        ),
    )
    good = (
        Good(
            "def two(model, x):\n    out = model(x)\n    out.mean().backward(retain_graph=True)\n    out.std().backward()\n",
            "the second loss walks the same graph",
        ),
        Good(
            "def heads(trunk, heads, x):\n    shared = trunk(x)\n    for head in heads:\n        head(shared).mean().backward(retain_graph=True)\n",
            "the trunk's graph is walked again in the next turn",
        ),
        Good(
            "def unroll(cell, inputs, state):\n    for x in inputs:\n        state = cell(x) + state\n"
            "        state.mean().backward(retain_graph=True)\n",
            "the state carries the graph into the next turn",
        ),
        Good(
            "def first(model, x):\n    out = model(x)\n    out.mean().backward(retain_graph=True)\n    return out\n",
            "the caller may go through the same output",
        ),
        Good(
            "import torch\n\n\ndef penalty(model, x):\n    x = x.detach().requires_grad_()\n"
            "    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True, retain_graph=True)\n    return g.norm()\n",
            "create_graph=True needs the graph anyway",
        ),
        Good(
            "def step(loss):\n    loss.backward(retain_graph=True)\n",
            "the loss comes from outside, and so does its graph's next use",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        receivers = Receivers(module, facts)
        for call in receivers.calls(("backward", "grad")):
            if flag(call, "retain_graph") is not True or any(k.arg == "create_graph" for k in call.keywords):
                continue
            scope = module.enclosing_function(call) or module.tree
            run = facts.walk(scope)
            if run and receivers.is_torch(call, scope) and used_once(run, call):
                edit = without_keyword(module, call, "retain_graph")
                fix = Fix("drop retain_graph=True", Safety.UNSAFE, (edit,), REASON) if edit else None
                yield self.finding(module, call, MESSAGE, fix=fix)

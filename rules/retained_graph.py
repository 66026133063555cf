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

    Why: backward frees what the forward saved while it walks the graph, so that the peak falls as it goes. With
    `retain_graph=True` everything saved lives until the last reference to the loss is rebound, which in a loop is after the
    next forward: two steps' saved tensors at once. The flag is needed only where the same graph is walked again: another
    loss over a shared trunk, a second call on the same output, a state carried over iterations. A second forward makes
    another graph.

    Fix safety: dropping the flag is unsafe because a module may keep a part of its graph on itself (a hidden state that is
    not detached), which this file does not show; the next backward then raises "Trying to backward through the graph a
    second time", so a wrong fix is loud.

    Source: torch 2.13, `torch/csrc/autograd/engine.cpp` (`release_variables` unless `keep_graph`).
    """

    code = "LT010"
    name = "retained-graph"
    needles = ((rb"retain_graph\s*=\s*True",),)
    bad = (
        Bad(
            """\
import torch.nn.functional as F


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()
""",
            (8,),
            """\
import torch.nn.functional as F


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
import torch


def saliency(model, x):
    x = x.detach().requires_grad_()
    score = model(x).sum()
    (slope,) = torch.autograd.grad(score, x, retain_graph=True)
    return slope.abs()
""",
            (7,),
            """\
import torch


def saliency(model, x):
    x = x.detach().requires_grad_()
    score = model(x).sum()
    (slope,) = torch.autograd.grad(score, x)
    return slope.abs()
""",
        ),
        Bad(
            """\
def gan(d, g, real, z):
    fake = g(z)
    d_loss = d(fake.detach()).mean() - d(real).mean()
    d_loss.backward(retain_graph=True)
    g_loss = -d(fake).mean()
    g_loss.backward()
""",
            (4,),
            """\
def gan(d, g, real, z):
    fake = g(z)
    d_loss = d(fake.detach()).mean() - d(real).mean()
    d_loss.backward()
    g_loss = -d(fake).mean()
    g_loss.backward()
""",
        ),
        Bad(
            """\
def two(model, x, y):
    out = model(x)
    out.mean().backward(retain_graph=True)
    out.std().backward(retain_graph=True)
""",
            (4,),
            """\
def two(model, x, y):
    out = model(x)
    out.mean().backward(retain_graph=True)
    out.std().backward()
""",
        ),
    )
    good = (
        Good(
            """\
def two(model, x):
    out = model(x)
    out.mean().backward(retain_graph=True)
    out.std().backward()
""",
            "the second loss walks the same graph",
        ),
        Good(
            """\
def heads(trunk, heads, x):
    shared = trunk(x)
    for head in heads:
        head(shared).mean().backward(retain_graph=True)
""",
            "the trunk's graph is walked again in the next turn",
        ),
        Good(
            """\
def unroll(cell, inputs, state):
    for x in inputs:
        state = cell(x) + state
        state.mean().backward(retain_graph=True)
""",
            "the state carries the graph into the next turn",
        ),
        Good(
            """\
def first(model, x):
    out = model(x)
    out.mean().backward(retain_graph=True)
    return out
""",
            "the caller may go through the same output",
        ),
        Good(
            """\
import torch


def penalty(model, x):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True, retain_graph=True)
    return g.norm()
""",
            "create_graph=True needs the graph anyway",
        ),
        Good(
            """\
def step(loss):
    loss.backward(retain_graph=True)
""",
            "the loss comes from outside, and so does its graph's next use",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        receivers = Receivers(module, facts)
        for call in receivers.calls(("backward", "grad")):
            if flag(call, "retain_graph") is not True or _needs_graph(call):
                continue
            scope = module.enclosing_function(call) or module.tree
            run = facts.walk(scope)
            if run and receivers.is_torch(call, scope) and used_once(run, call):
                edit = without_keyword(module, call, "retain_graph")
                fix = Fix("drop retain_graph=True", Safety.UNSAFE, (edit,), REASON) if edit else None
                yield self.finding(module, call, MESSAGE, fix=fix)


def _needs_graph(call: ast.Call) -> bool:
    """Whether a second graph is, or may be, asked for, which needs this one."""
    return any(k.arg == "create_graph" for k in call.keywords) and flag(call, "create_graph") is not False

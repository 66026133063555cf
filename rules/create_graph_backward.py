"""LT008: backward with create_graph=True, which ties every parameter to its gradient."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.backward_calls import Receivers, flag, second_order_fix
from lifetime.linter.blocks import statement_of
from lifetime.linter.grad_release import covers, released, released_elsewhere
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.study import study

MESSAGE = (
    "backward with create_graph=True leaves each parameter and its .grad in a C++ cycle that gc never frees; use autograd.grad"
)


class CreateGraphBackward(Rule):
    """LT008: `backward(create_graph=True)` makes each parameter and its `.grad` keep each other alive.

    Why: with `create_graph=True` the gradient that is stored in `p.grad` has a graph of its own, and that graph leads back
    to `p`: p -> p.grad -> grad_fn -> AccumulateGrad -> p, all in C++, so that not even `gc.collect()` frees it. torch warns
    about it once a process. `torch.autograd.grad(loss, params, create_graph=True)` returns the gradients and stores none. A
    `zero_grad()` at the top of a loop comes too late for the last step.

    Fix safety: the fix sets the `.grad` fields to None where the block ends, as torch's own warning advises. It is unsafe,
    because code that runs later may want to read them; where that is so, `torch.autograd.grad` is the way out. No fix where
    the owner of the parameters is not known, or where the function still reads `.grad` afterwards.

    Source: torch 2.13, `torch/csrc/autograd/engine.cpp` (the warning) and `torch/autograd/__init__.py`; measured: the cycle
    survives `gc.collect()`.
    """

    code = "LT008"
    name = "create-graph-backward"
    needles = ((rb"\bbackward\s*\(", rb"create_graph\s*=\s*True"),)
    bad = (
        Bad(
            """\
def train(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward(create_graph=True)
        optimizer.step()
""",
            (5,),
            """\
def train(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward(create_graph=True)
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
        Bad(
            """\
import torch


def curvature(model, x):
    torch.autograd.backward(model(x).sum(), create_graph=True)
    params = list(model.parameters())
    (h, *_) = torch.autograd.grad([p.grad for p in params], params, params)
    return h.sum().item()
""",
            (5,),
            """\
import torch


def curvature(model, x):
    torch.autograd.backward(model(x).sum(), create_graph=True)
    params = list(model.parameters())
    (h, *_) = torch.autograd.grad([p.grad for p in params], params, params)
    for param in model.parameters():
        param.grad = None
    return h.sum().item()
""",
        ),
        Bad(
            """\
def penalty(critic, other, x):
    loss = critic(x).mean()
    loss.backward(create_graph=True)
    for p in other.parameters():
        p.grad = None
""",
            (3,),
        ),
    )
    good = (
        Good(
            """\
def step(model, x):
    model(x).sum().backward(create_graph=False)
""",
            "no second graph is made",
        ),
        Good(
            """\
import torch


def inner(model, x):
    return torch.autograd.grad(model(x).sum(), list(model.parameters()), create_graph=True)
""",
            "autograd.grad stores nothing in .grad",
        ),
        Good(
            """\
def penalty(model, x):
    model(x).sum().backward(create_graph=True)
    total = sum(p.grad.norm() for p in model.parameters())
    for p in model.parameters():
        p.grad = None
    return total
""",
            "the .grad fields are given up on every way out, as torch's warning advises",
        ),
        Good(
            """\
class Scaler:
    def backward(self, loss, params, create_graph=False):
        return loss, params, create_graph


def step(scaler: Scaler, loss, params):
    return scaler.backward(loss, params, create_graph=True)
""",
            "this backward is the file's own",
        ),
        Good(
            """\
def step(loss, order):
    loss.backward(create_graph=order > 1)
""",
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
            if not covers(released(module, scope, statement), used) and not released_elsewhere(module, scope):
                fix = second_order_fix(module, scope, statement, used & receivers.known_modules(scope))
                yield self.finding(module, call, MESSAGE, fix=fix)

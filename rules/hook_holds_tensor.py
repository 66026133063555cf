"""LT007: hooks that keep alive the very tensor they hang on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.hooks import Held, Hooks, registrations
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.study import study
from lifetime.linter.values import Kind, Value


class HookHoldsTensor(Rule):
    """LT007: a tensor or node hook holds the hooked tensor or something computed from it.

    Why: the hook is owned by the autograd node, the hook's closure owns the tensor, and the tensor owns the node. One link of that
    ring is a C++ reference that Python's collector does not traverse, so `gc.collect()` never frees it: every step leaves
    its graph behind. On a leaf's own `register_hook` the ring is all Python; then it waits for the collector instead, which large
    trainers switch off. Naming `t.shape` or `t.detach()` inside the hook keeps `t` too: read what the hook needs before,
    (`shape = t.shape`), or go through `weakref.ref(t)`. A tensor further upstream is no cycle: it does not lead back to the hook.

    Fix safety: no fix is offered. What the hook should see instead (a shape, a detached copy, a weak reference) is the author's choice.

    Source: measured on CPython 3.11 and torch 2.13; `torch/csrc/autograd/function.h` (hooks live on the node) and
    `torch/csrc/autograd/python_hook.cpp` (a node's Python hooks are reached from C++ only).
    """

    code = "LT007"
    name = "hook-holds-tensor"
    needles = ((rb"register_(?:hook|post_accumulate_grad_hook|prehook)\s*\(",),)
    bad = (
        Bad("def clip(h):\n    h.register_hook(lambda grad: grad.clamp(max=h.abs().max()))\n    return h\n", (2,)),
        Bad(
            "import torch\n\n\ndef gate(h):\n    out = torch.exp(h)\n\n    def hook(grad):\n        return grad * out.detach()\n\n"
            "    h.register_hook(hook)\n    return out\n",
            (10,),
        ),
        Bad("def watch(h, log):\n    h.register_hook(lambda grad, h=h: log.append(h.shape))\n", (2,)),
        Bad(
            "from functools import partial\n\n\ndef scale(h, grad):\n    return grad / h.norm()\n\n\n"
            "def watch(h):\n    h.register_hook(partial(scale, h))\n    return h\n",
            (9,),
        ),
        Bad(
            "def trace(out, sink):\n    out.grad_fn.register_hook(lambda gi, go: sink.append(out.shape))\n    return out\n", (2,)
        ),
        Bad(
            "def make_hook(t):\n    def hook(grad):\n        return grad * t\n\n    return hook\n\n\n"
            "def watch(t):\n    t.register_hook(make_hook(t))\n    return t\n",
            (9,),
        ),
    )
    good = (
        Good(
            "def watch(h, log):\n    shape = h.shape\n    h.register_hook(lambda grad: log.append(shape))\n",
            "the hook holds a shape, not the tensor",
        ),
        Good(
            "def gate(x, w):\n    y = x @ w\n    y.register_hook(lambda grad: grad * x.sum())\n    return y\n",
            "x lies upstream of y and does not lead back to the hook",
        ),
        Good(
            "def probe(h, log):\n    handle = h.register_hook(lambda grad: log.append(h.norm()))\n    try:\n        h.sum().backward()\n"
            "    finally:\n        handle.remove()\n",
            "the hook is removed again",
        ),
        Good("def clip(h):\n    h.register_hook(lambda h: h.clamp(max=1.0))\n    return h\n", "the parameter shadows the tensor"),
        Good(
            "import weakref\n\n\ndef watch(h, log):\n    ref = weakref.ref(h)\n"
            "    h.register_hook(lambda grad: log.append(ref().shape))\n    return h\n",
            "a weak reference keeps nothing alive",
        ),
        Good(
            "def count(p, ready):\n    node = p.expand_as(p).grad_fn.next_functions[0][0]\n"
            "    node.register_hook(lambda *unused: ready.append(p.numel()))\n    return node\n",
            "a parameter's AccumulateGrad node holds the parameter anyway, and the parameter does not hold the node",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        for call, func in registrations(module):
            scope = module.enclosing_function(call) or module.tree
            run = facts.walk(scope)
            if run is None or not (call.args or call.keywords):
                continue
            hooks = Hooks(module, scope, run)
            hook = call.args[0] if call.args else call.keywords[0].value
            for receiver in run.results.get(func.value, ()):
                held = self.closing(run.ancestry.behind, receiver, hooks.held(hook))
                if held and not hooks.is_let_go(call):
                    yield self.finding(module, call, self.message(module, func, receiver, held))
                    break

    @staticmethod
    def closing(behind, receiver: Value, held: Iterator[Held]) -> Held | None:
        """The first thing held that leads back to the receiver."""
        if receiver.kind in {Kind.PLAIN, Kind.NONE, Kind.MODULE, Kind.CONTAINER}:
            return None
        return next((h for h in held if receiver.own in behind(h.value, sure=True)), None)

    @staticmethod
    def message(module: Module, func: ast.Attribute, receiver: Value, held: Held) -> str:
        hooked = module.text(func.value)
        what = f"`{held.name}`" + ("" if held.value.own == receiver.own else f", which is computed from `{hooked}`")
        return f"this hook on `{hooked}` holds {what}: node, hook and tensor keep each other alive through C++, where gc cannot free them"

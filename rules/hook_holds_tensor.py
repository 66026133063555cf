"""LT007: hooks that keep alive the very tensor they hang on."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.execute import Execution
from lifetime.linter.hooks import Held, Hooks, registrations
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.study import study
from lifetime.linter.values import How, Kind, Value

LEAF = ", until the garbage collector comes by"
MADE = " through C++, where the garbage collector cannot free them"
UNKNOWN = ", and unless it is a leaf the garbage collector cannot free them"


class HookHoldsTensor(Rule):
    """LT007: a tensor or node hook holds the hooked tensor or something computed from it.

    Why: the hook is owned by the autograd node, the hook's closure owns the tensor, and the tensor owns the node. One link
    of that ring is a C++ reference that Python's collector does not traverse, so `gc.collect()` never frees it: every step
    leaves its graph behind. On a leaf's own `register_hook` the ring is all Python; then it waits for the collector
    instead, which large trainers switch off. Naming `t.shape` or `t.detach()` inside the hook keeps `t` too: read what the
    hook needs before, (`shape = t.shape`), or go through `weakref.ref(t)`. A tensor further upstream is no cycle: it does
    not lead back to the hook.

    Fix safety: no fix is offered. What the hook should see instead (a shape, a detached copy, a weak reference) is the
    author's choice.

    Source: measured on CPython 3.11 and torch 2.13; `torch/csrc/autograd/function.h` (hooks live on the node) and
    `torch/csrc/autograd/python_hook.cpp` (a node's Python hooks are reached from C++ only).
    """

    code = "LT007"
    name = "hook-holds-tensor"
    needles = ((rb"register_(?:hook|post_accumulate_grad_hook|prehook)\s*\(",),)
    bad = (
        Bad(
            """\
def clip(h):
    h.register_hook(lambda grad: grad.clamp(max=h.abs().max()))
    return h
""",
            (2,),
        ),
        Bad(
            """\
import torch


def gate(h):
    out = torch.exp(h)

    def hook(grad):
        return grad * out.detach()

    h.register_hook(hook)
    return out
""",
            (10,),
        ),
        Bad(
            """\
def watch(h, log):
    h.register_hook(lambda grad, h=h: log.append(h.shape))
""",
            (2,),
        ),
        Bad(
            """\
from functools import partial


def scale(h, grad):
    return grad / h.norm()


def watch(h):
    h.register_hook(partial(scale, h))
    return h
""",
            (9,),
        ),
        Bad(
            """\
def trace(out, sink):
    out.grad_fn.register_hook(lambda gi, go: sink.append(out.shape))
    return out
""",
            (2,),
        ),
        Bad(
            """\
def make_hook(t):
    def hook(grad):
        return grad * t

    return hook


def watch(t):
    t.register_hook(make_hook(t))
    return t
""",
            (9,),
        ),
    )
    good = (
        Good(
            """\
def watch(h, log):
    shape = h.shape
    h.register_hook(lambda grad: log.append(shape))
""",
            "the hook holds a shape, not the tensor",
        ),
        Good(
            """\
def gate(x, w):
    y = x @ w
    y.register_hook(lambda grad: grad * x.sum())
    return y
""",
            "x lies upstream of y and does not lead back to the hook",
        ),
        Good(
            """\
def probe(h, log):
    handle = h.register_hook(lambda grad: log.append(h.norm()))
    try:
        h.sum().backward()
    finally:
        handle.remove()
""",
            "the hook is removed again",
        ),
        Good(
            """\
def clip(h):
    h.register_hook(lambda h: h.clamp(max=1.0))
    return h
""",
            "the parameter shadows the tensor",
        ),
        Good(
            """\
import weakref


def watch(h, log):
    ref = weakref.ref(h)
    h.register_hook(lambda grad: log.append(ref().shape))
    return h
""",
            "a weak reference keeps nothing alive",
        ),
        Good(
            """\
def count(p, ready):
    node = p.expand_as(p).grad_fn.next_functions[0][0]
    node.register_hook(lambda *unused: ready.append(p.numel()))
    return node
""",
            "a parameter's AccumulateGrad node holds the parameter anyway, and the parameter does not hold the node",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        hooks: Hooks | None = None
        for call, func in registrations(module):
            scope = module.enclosing_function(call) or module.tree
            run = facts.walk(scope)
            if run is None or not (call.args or call.keywords):
                continue
            if hooks is None or hooks.run is not run:
                hooks = Hooks(module, scope, run)
            hook = call.args[0] if call.args else call.keywords[0].value
            for receiver in run.results.get(func.value, ()):
                held = closing(run, receiver, hooks.held(hook))
                if held and not hooks.is_let_go(call):
                    same = held.value.own == receiver.own
                    end = LEAF if receiver.leaf and func.attr == "register_hook" else MADE if is_made(run, receiver) else UNKNOWN
                    yield self.finding(module, call, message(module.text(func.value), held.name, same) + end)
                    break


def closing(run: Execution, receiver: Value, held: Iterator[Held]) -> Held | None:
    """The first thing held that leads back to the receiver, which requires a gradient: else it could not be hooked."""
    if receiver.kind in (Kind.PLAIN, Kind.NONE, Kind.MODULE, Kind.CONTAINER):
        return None
    return next((h for h in held if receiver.own in run.ancestry.behind(h.value, sure=True, forward=True)), None)


def is_made(run: Execution, receiver: Value) -> bool:
    """Whether the hooked value is known to be a node or to have one."""
    return receiver.kind is Kind.NODE or run.ancestry.origin(receiver).how in (How.OPERATION, How.FORWARD)


def message(hooked: str, held: str, same: bool) -> str:
    what = f"`{held}`" + ("" if same else f", which is computed from `{hooked}`")
    return f"this hook on `{hooked}` holds {what}: hook and tensor keep each other alive"

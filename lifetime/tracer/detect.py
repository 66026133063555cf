"""Where a step ends when no function was named: at optimizer steps, at backward passes, or where the program says so.

Note [one step a step]: engines step an optimizer once a sub-group, chain optimizers, or train two networks in turn. So an
optimizer step only makes a boundary *due*; it happens at the next module forward (or outermost backward), and only when
every optimizer that is expected has stepped. Expected are all optimizers alive at the first candidate; when one of them
steps again while others have not, those others have a rhythm of their own and are no longer waited for.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from lifetime.tracer.guard import unseen_by_dynamo

OPTIMIZER = "optimizer"
BACKWARD = "backward"


class Detector:
    """Calls `on_step` at every boundary. `mode` is `optimizer`, `backward` or None: the first of the two that the program shows.

    Costs one Python call an optimizer step and one a backward pass. While `is_quiet()` boundaries are only counted: no
    module's forward is listened to, the next backward is early enough.
    """

    def __init__(self, mode: str | None, on_step: Callable[[], None], is_quiet: Callable[[], bool] = lambda: False) -> None:
        self.mode = mode
        self.on_step = on_step
        self.is_quiet = is_quiet
        self._stepped: set[int] = set()
        self._expected: set[int] | None = None
        self._depth = 0
        self._forward: ExitStack | None = None
        self._removers: list[Callable[[], None]] = []

    def install(self) -> None:
        for ours in (Detector._after_optimizer, Detector._after_backward, Detector._candidate):
            unseen_by_dynamo(ours, deep=True)
        if self.mode != BACKWARD:
            self._removers.append(register_optimizer_step_post_hook(self._after_optimizer).remove)
        run = torch.autograd._engine_run_backward

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            try:
                if self._depth == 1 and self._stepped:
                    self._candidate()
                result = run(*args, **kwargs)
            finally:
                self._depth -= 1
            # `torch.autograd.grad` accumulates nothing: a penalty inside a step, never its end.
            if self._depth == 0 and self.mode != OPTIMIZER and kwargs.get("accumulate_grad", False):
                del args, kwargs
                self._after_backward()
            return result

        torch.autograd._engine_run_backward = unseen_by_dynamo(run_backward)
        self._removers.append(lambda: setattr(torch.autograd, "_engine_run_backward", run))

    def remove(self) -> None:
        self._disarm_forward()
        while self._removers:
            self._removers.pop()()

    def _after_optimizer(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        key = id(optimizer)
        if self.mode is None:
            self.mode = OPTIMIZER
        if key in self._stepped and self._expected is not None and not self._expected <= self._stepped:
            self._expected = set(self._stepped)
        self._stepped.add(key)
        if self._forward is None and not self.is_quiet():
            self._forward = _before_forward(self._candidate)

    def _after_backward(self) -> None:
        if self.mode == BACKWARD or not optimizer_classes():
            self.on_step()

    def _candidate(self) -> None:
        """The first forward or backward after an optimizer step."""
        self._disarm_forward()
        if self._expected is None:
            self._expected = {id(o) for o in _live_optimizers()} | self._stepped
        if self._expected <= self._stepped:
            self._stepped.clear()
            self.on_step()

    def _disarm_forward(self) -> None:
        if self._forward is not None:
            self._forward.close()
            self._forward = None


def _before_forward(action: Callable[[], None]) -> ExitStack:
    """`action` runs before the forward of any module, until the stack is closed."""

    def hook(module: Any, args: Any) -> None:
        action()

    ends = ExitStack()
    ends.callback(register_module_forward_pre_hook(unseen_by_dynamo(hook, deep=True)).remove)
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    if compiler is not None:  # a compiled module warns of global hooks; in its call it is early enough to be gone
        kind = compiler.OptimizedModule
        original = kind.__call__

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            action()
            return original(module, *args, **kwargs)

        kind.__call__ = call
        ends.callback(setattr, kind, "__call__", original)
    return ends


def optimizer_classes() -> list[type]:
    """Every optimizer class that was ever constructed: torch marks the `step` of a class when its first instance is made."""
    found: list[type] = []
    todo: list[type] = [Optimizer]
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if getattr(vars(kind).get("step"), "hooked", False):
            found.append(kind)
    return found


def _live_optimizers() -> list[Optimizer]:
    classes = optimizer_classes()
    return [o for o in gc.get_referrers(*classes) if issubclass(type(o), Optimizer)] if classes else []

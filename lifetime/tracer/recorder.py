"""What one run computes and keeps, step by step: digests of gradients, losses, bytes between the steps, gradient copies.

Meant for a process of its own (`lifetime verify`), not for a user's run: it reads every gradient.
"""

from __future__ import annotations

import ctypes
import hashlib
import time
import weakref
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from lifetime.heap.watch import Watch
from lifetime.tracer.allocator import allocated_bytes
from lifetime.tracer.copies import Copies, leaves_below
from lifetime.tracer.detect import Detector, optimizer_classes
from lifetime.tracer.uncompiled import uncompiled
from lifetime.verify.model import ArmStep, Digest

Wanted = tuple[int, str]
"""A step and a parameter whose gradient's values are asked for, to say by how much two runs differ."""


class Recorder:
    """Hooks the optimizer, the backward engine and module forwards; `steps` is what it saw."""

    def __init__(self, wanted: Wanted | None = None) -> None:
        self.steps: list[ArmStep] = []
        self.names = Names()
        self.values: list[float] | None = None
        self._wanted = wanted
        self._watch = Watch()
        self._touched: dict[int, weakref.ref[torch.Tensor]] = {}
        self._loss: float | None = None
        self._adopted = self._copied = 0
        self._started = time.perf_counter()
        self._optimized = False
        self._depth = 0

    def install(self) -> None:
        register_module_forward_pre_hook(uncompiled(self._before_forward))
        register_optimizer_step_pre_hook(uncompiled(self._before_optimizer))
        Detector(None, uncompiled(self._boundary)).install()
        run = torch.autograd._engine_run_backward

        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if self._depth or not kwargs.get("accumulate_grad", False):
                return run(outputs, *args, **kwargs)
            self._depth += 1
            copies = Copies()
            try:
                self._before_backward(tuple(outputs), copies)
                return run(outputs, *args, **kwargs)
            finally:
                self._depth -= 1
                copies.detach()
                self._after_backward(copies)

        torch.autograd._engine_run_backward = uncompiled(run_backward)

    def parameters(self) -> tuple[Digest, ...]:
        """The parameters as they are now, by name."""
        alive = ((name, ref()) for name, ref in self.names.all())
        return tuple(Digest(name, digest(tensor)) for name, tensor in alive if tensor is not None)

    def _before_forward(self, module: torch.nn.Module, args: Any) -> None:
        self.names.learn(module)

    def _before_backward(self, outputs: tuple[Any, ...], copies: Copies) -> None:
        if len(outputs) == 1 and isinstance(outputs[0], torch.Tensor) and outputs[0].numel() == 1:
            self._loss = float(outputs[0].detach())
        leaves = leaves_below(outputs)
        self._touched.update((id(leaf), weakref.ref(leaf)) for leaf in leaves)
        copies.attach(leaves)

    def _after_backward(self, copies: Copies) -> None:
        self._adopted += copies.adopted
        self._copied += copies.copied
        if not self._optimized and not optimizer_classes():
            self._record(ref() for ref in self._touched.values())

    def _before_optimizer(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._optimized = True
        self._record(p for group in optimizer.param_groups for p in group["params"])

    def _record(self, tensors: Iterable[torch.Tensor | None]) -> None:
        graded = [(self.names.of(t), t.grad) for t in tensors if t is not None and t.grad is not None]
        gradients = tuple(Digest(name, digest(grad)) for name, grad in graded)
        for name, grad in graded:
            if self._wanted == (len(self.steps), name):
                self.values = [float(x) for x in grad.detach().double().flatten().tolist()]
        now = time.perf_counter()
        self.steps.append(ArmStep(gradients, self._loss, now - self._started, self._copied, self._adopted))
        self._started, self._loss, self._adopted, self._copied = now, None, 0, 0

    def _boundary(self) -> None:
        """Between two steps: the allocator first, before our own look moves it."""
        if not self.steps:
            return
        floor = allocated_bytes()
        self.steps[-1] = replace(self.steps[-1], floor_bytes=floor, live_bytes=self._watch.observe(len(self.steps)))


class Names:
    """Names of parameters: as their outermost module calls them, else by the order in which they were met."""

    def __init__(self) -> None:
        self._seen: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._classes: dict[str, int] = {}
        self._names: dict[int, tuple[str, weakref.ref[torch.Tensor]]] = {}

    def learn(self, module: torch.nn.Module) -> None:
        if module in self._seen:
            return
        fresh = [(name, p) for name, p in module.named_parameters() if not self._known(p)]
        if fresh:
            kind = type(module).__name__
            self._classes[kind] = self._classes.get(kind, 0) + 1
            number = f"#{self._classes[kind]}" if self._classes[kind] > 1 else ""
            for name, parameter in fresh:
                self._names[id(parameter)] = (f"{kind}{number}.{name}", weakref.ref(parameter))
        self._seen.update(module.modules())

    def of(self, tensor: torch.Tensor) -> str:
        if not self._known(tensor):
            shape = "x".join(map(str, tensor.shape)) or "scalar"
            self._names[id(tensor)] = (f"leaf {len(self._names)} ({shape})", weakref.ref(tensor))
        return self._names[id(tensor)][0]

    def all(self) -> list[tuple[str, weakref.ref[torch.Tensor]]]:
        return list(self._names.values())

    def _known(self, tensor: torch.Tensor) -> bool:
        """The address alone is not enough: a dead tensor's is used again."""
        entry = self._names.get(id(tensor))
        return entry is not None and entry[1]() is tensor


def digest(tensor: torch.Tensor) -> str:
    """A hash of the tensor's type, shape and bits; NaNs and signed zeros count as the bits that they are."""
    plain = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    bits = plain.cpu().contiguous()
    size = bits.numel() * bits.element_size()
    state = hashlib.blake2b(f"{bits.dtype} {tuple(bits.shape)}".encode(), digest_size=16)
    state.update(ctypes.string_at(bits.data_ptr(), size) if size else b"")
    return state.hexdigest()

"""Hooks of a tensor that is gone: autograd keeps their dictionary inside the node that made the tensor, and no API lists it.

Source: torch/csrc/autograd/{function.h,python_hook.h} (`Node::tensor_pre_hooks_`, a vector of `PyFunctionTensorPreHook`: a vtable,
the dictionary, an index). Where these lie is measured, once, on a node of our own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import torch

from lifetime.heap import autograd
from lifetime.heap.memory import WORD, Memory

HEADER = 2 * WORD
_WRAPPER_BYTES = 256
_NODE_BYTES = 512
"""More than the part of a node's wrapper that leads to the node, and of the node that holds its hooks."""
_MOST_HOOKS = 64
TENSOR_HOOKS = "<tensor_pre_hooks>"


class TensorHooks:
    """Reads the dictionaries of tensor hooks out of nodes. On Linux; elsewhere it finds none."""

    def __init__(self) -> None:
        self._memory = Memory()
        self._layouts = {python: self._measured(python) for python in (False, True)}

    def of(self, node: Any, wanted: Collection[int]) -> Iterator[int]:
        """The addresses among `wanted` of the dictionaries of the node's tensor hooks."""
        layout = self._layouts[autograd.is_python(node)]
        if layout is not None:
            yield from (one for one in self._at(node, *layout) if one in wanted)

    def end(self) -> None:
        self._memory.end()

    def _at(self, node: Any, wrapper: int, vector: int) -> Iterator[int]:
        """What the hooks of the vector at this offset refer to."""
        for inner in self._memory.words(id(node) + wrapper, WORD):
            for hook in self._elements(self._memory.words(inner + vector, 3 * WORD)):
                yield from self._memory.words(hook, 2 * WORD)[1:]

    def _elements(self, vector: tuple[int, ...]) -> tuple[int, ...]:
        """What a C++ vector of pointers holds: its begin, its end, the end of its room."""
        begin, end, room = vector or (0, 0, 0)
        likely = 0 < begin < end <= room and (end - begin) % WORD == 0 and room - begin <= _MOST_HOOKS * WORD
        return self._memory.words(begin, end - begin) if likely else ()

    def _measured(self, python: bool) -> tuple[int, int] | None:
        """Offsets, in a wrapper and in its node, of the pointer to the node and of the vector: those that are right for
        several nodes. Right for one alone they may be by chance."""
        probes = [_probe(python, hooked) for hooked in (True, False, True)]
        places = ((wrapper, vector) for wrapper in range(HEADER, _WRAPPER_BYTES, WORD) for vector in range(0, _NODE_BYTES, WORD))
        return next((one for one in places if all(list(self._at(node, *one)) == found for node, found in probes)), None)


def _probe(python: bool, hooked: bool) -> tuple[Any, list[int]]:
    """A node and the addresses of the dictionaries of its tensor hooks, which it keeps."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = torch.empty(0, requires_grad=True)
        tensor = _Copy.apply(leaf) if python else leaf.view_as(leaf)  # type: ignore[no-untyped-call]
    return tensor.grad_fn, [id(tensor.register_hook(_nothing).hooks_dict_ref())] if hooked else []


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


def _nothing(grad: torch.Tensor) -> None:
    return None

"""Gradient buffers that AccumulateGrad adopts, and those that it has to copy because somebody still holds them.

Source: torch/csrc/autograd/functions/accumulate_grad.h (2.13): a first gradient is taken over as it is when nobody else
refers to it, and cloned otherwise. A recompute whose leaf keeps its `.grad` is such a somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch


class Copies:
    """Counts over one backward pass: `attach` before it, `detach` after. Leaves that have a gradient already are not counted."""

    def __init__(self) -> None:
        self.adopted = 0
        self.copied = 0
        self._arrived: dict[int, int] = {}
        self._removers: list[Callable[[], None]] = []

    def attach(self, leaves: list[torch.Tensor]) -> None:
        for index, leaf in enumerate(leaves):
            if leaf.grad is None:
                self._removers.append(leaf.register_hook(self._arrival(index)).remove)
                self._removers.append(leaf.register_post_accumulate_grad_hook(self._settled(index)).remove)

    def detach(self) -> None:
        while self._removers:
            self._removers.pop()()
        self._arrived.clear()

    def _arrival(self, index: int) -> Callable[[torch.Tensor], None]:
        def arrive(gradient: torch.Tensor) -> None:
            self._arrived[index] = gradient.data_ptr()

        return arrive

    def _settled(self, index: int) -> Callable[[torch.Tensor], None]:
        def settle(leaf: torch.Tensor) -> None:
            if leaf.grad is not None and index in self._arrived:
                same = leaf.grad.data_ptr() == self._arrived[index]
                self.adopted += same
                self.copied += not same

        return settle


def leaves_below(outputs: Iterator[Any] | tuple[Any, ...]) -> list[torch.Tensor]:
    """The leaves that a backward pass from `outputs` accumulates into, in the order of a depth-first walk."""
    todo = [o.grad_fn if isinstance(o, torch.Tensor) else getattr(o, "node", None) for o in outputs]
    seen: set[Any] = set()
    leaves = []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.append(leaf)
        todo += [following for following, _ in reversed(node.next_functions)]
    return leaves

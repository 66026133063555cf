"""A saved slot on a torch whose slots do not show what they hold: read from its memory, and unpacked only where no hook would run.

torch 2.13 gives a slot `.data` and `.unpack_hook`, torch 2.9 only `register_hooks`. Where in a slot its hooks lie is found out on
a slot of our own, before and after it is given hooks; on a torch where that fails nothing is read.
Source: torch/csrc/autograd/{saved_variable.h,python_saved_variable_hooks.h}.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch

from lifetime.heap.memory import Memory
from lifetime.heap.words import HEADER, WORD, pointer_at

_SLOT_BYTES = 256
"""More than a slot has before its hooks."""
_HOOKS_BYTES = 64


@dataclass(frozen=True)
class Places:
    """Offsets in bytes: of the pointer to the hooks in a slot, of the unpack hook and of the packed object in the hooks."""

    hooks: int
    unpack: int
    packed: int


class ClosedSlot:
    """The slot of `node` that Python unpacks as `node.attribute`, or as item `index` of that; reads like one of a newer torch."""

    def __init__(self, node: Any, attribute: str, index: int | None, raw: Any) -> None:
        self.raw = raw
        self._node = node
        self._attribute = attribute
        self._index = index

    @property
    def data(self) -> object | None:
        """The packed object where there are hooks, else the tensor; of a saved output another one with the same storage.

        Raises:
            RuntimeError: the slot was freed, or written to since.
        """
        hooks, known = self._hooks(), _known()
        if hooks:
            return _object_at(hooks + known.packed)
        first, second = self._unpacked(), self._unpacked()
        value: object = first if first is second else vars(torch._C.TensorBase)["data"].__get__(first)
        return value

    @property
    def unpack_hook(self) -> Callable[..., object] | None:
        hooks, known = self._hooks(), _known()
        found: Callable[..., object] | None = cast(Any, _object_at(hooks + known.unpack)) if hooks else None
        return found

    def register_hooks(self, *hooks: Callable[..., object]) -> None:
        self.raw.register_hooks(*hooks)

    def _hooks(self) -> int:
        """The address of the hooks, 0 where the slot has none."""
        return hooks_of(self.raw)

    def _unpacked(self) -> object | None:
        """What unpacking gives, which runs nobody's code: no slot has hooks. A Python ctx unpacks all its slots or none."""
        if self._attribute == "saved_tensors" and any(hooks_of(raw) for raw in self._node._raw_saved_tensors):
            raise RuntimeError("to unpack this slot is to unpack one with hooks")
        value: Any = getattr(self._node, self._attribute)
        one: object = value if self._index is None else value[self._index]
        return one


def hooks_of(raw: Any) -> int:
    """The address of the hooks of a slot, 0 where it has none."""
    return pointer_at(pointer_at(id(raw) + HEADER) + _known().hooks)


@cache
def places() -> Places | None:
    """Where this torch keeps what; None where that cannot be found out."""
    packed = object()

    def unpack(_: object) -> object:
        raise RuntimeError("this slot is never unpacked")

    try:
        leaf = torch.ones(1, requires_grad=True, device="cpu")
        node: Any = (leaf * leaf).grad_fn
        raw = node._raw_saved_self
        start = pointer_at(id(raw) + HEADER)
        before = _read(start, _SLOT_BYTES)
        raw.register_hooks(lambda _: packed, unpack)
    except (AttributeError, RuntimeError, TypeError):
        return None
    for index, (old, new) in enumerate(zip(before, _read(start, _SLOT_BYTES), strict=False)):
        inside = _read(new, _HOOKS_BYTES) if new and not old else ()
        if id(unpack) in inside and id(packed) in inside:
            return Places(index * WORD, inside.index(id(unpack)) * WORD, inside.index(id(packed)) * WORD)
    return None


def _read(address: int, length: int) -> tuple[int, ...]:
    memory = Memory()
    words = memory.words(address, length)
    memory.end()
    return words


def _known() -> Places:
    found = places()
    if found is None:
        raise RuntimeError("where slots of this torch keep their hooks is not known")
    return found


def _object_at(address: int) -> object | None:
    target = pointer_at(address)
    value: object = ctypes.cast(target, ctypes.py_object).value if target else None
    return value

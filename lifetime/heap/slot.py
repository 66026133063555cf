"""A saved slot of an autograd node emptied: exactly that one, the others of the node stay."""

from __future__ import annotations

import os
from typing import Any

from lifetime.heap import autograd, words

_SAVED_VARIABLE_BYTES = 512
"""More than `sizeof(SavedVariable)`: about 200 in torch 2.13."""
_HOOKS_BYTES = 64
"""More than `sizeof(PySavedVariableHooks)`: a vtable and three references."""


def empty(slot: Any) -> None:
    """Make `slot` let go of what it holds.

    `register_hooks` packs the tensor at once, and a pack hook that returns None leaves nothing behind. A slot that is packed
    already refuses; then the reference of its hooks to the packed object is overwritten in memory.

    Raises:
        RuntimeError: the slot was freed before, or this torch has no such slot.
    """
    if autograd.unpack_hook(slot) is None:
        slot.register_hooks(_pack_nothing, _unpack_nothing)
    else:
        _overwrite_packed(getattr(slot, "raw", slot), id(autograd.saved_value(slot)))


def _pack_nothing(_: object) -> None:
    return None


def _unpack_nothing(packed: object) -> object:
    return packed


def _overwrite_packed(slot: Any, packed: int) -> None:
    """Find, behind the slot's `SavedVariable`, the hooks object that points at `packed`.

    Source: torch/csrc/autograd/{saved_variable.h,python_saved_variable_hooks.h}.
    """
    for pointer in _read(words.pointer_at(id(slot) + words.HEADER), _SAVED_VARIABLE_BYTES):
        for index, word in enumerate(_read(pointer, _HOOKS_BYTES)):
            if word == packed:
                words.overwrite_at(pointer + index * words.WORD)
                return
    raise RuntimeError("the packed value was not found behind the slot")


def _read(address: int, length: int) -> tuple[int, ...]:
    """The words at `address`, none where it is not mapped: read as a file, so that a wild pointer is an error and no crash."""
    if address <= 0 or address % words.WORD:
        return ()
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        return tuple(memoryview(os.pread(memory, length, address)).cast("Q"))
    except OSError:
        return ()
    finally:
        os.close(memory)

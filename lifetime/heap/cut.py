"""One reference cut, whatever its kind, in a process that ends soon after."""

from __future__ import annotations

import ctypes
import gc
import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lifetime.heap import autograd, native, peek, slot, threads, words
from lifetime.heap.graph import EdgeKind, ObjectId


@dataclass(frozen=True)
class Hop:
    """One accessor: how to go from an object to the next, in the words of an edge."""

    kind: EdgeKind
    name: str


@dataclass(frozen=True)
class Reference:
    """A reference, in words that hold in every copy of the heap.

    `anchor` is the address of an object that existed before the fork, `path` leads from it to the holder, `hop` says how the
    holder refers, `target` is the address of what it refers to, `count` how many times.
    """

    anchor: ObjectId
    path: tuple[Hop, ...]
    hop: Hop
    target: ObjectId
    count: int = 1


class Uncuttable(Exception):
    """The reference could not be cut; the message says why."""


def cut(reference: Reference) -> None:
    """Make the holder let go, as if the program had.

    Raises:
        Uncuttable: no way to cut this one; a reference further up may do.
    """
    holder = reach(reference.anchor, reference.path)
    name = reference.hop.name.lstrip(".")
    special = _SPECIAL.get(reference.hop.kind)
    try:
        if special is not None and special(holder, name, reference.target):
            return
        if _cut_python(holder, reference):
            return
    except (RuntimeError, TypeError, AttributeError, LookupError) as error:
        raise Uncuttable(f"{peek.type_name(holder)}.{name}: {error}") from None
    raise Uncuttable(f"{peek.type_name(holder)} refers in a way that has no cut ({name or reference.hop.kind.value})")


def reach(anchor: ObjectId, path: tuple[Hop, ...]) -> Any:
    """The object at the end of `path`.

    Raises:
        Uncuttable: the path does not lead there in this copy of the heap.
    """
    thing = ctypes.cast(anchor, ctypes.py_object).value
    for hop in path:
        try:
            thing = _follow(thing, hop.kind, hop.name.lstrip("."))
        except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise Uncuttable(f"cannot follow {hop.name}: {error}") from None
        if thing is None:
            raise Uncuttable(f"nothing at {hop.name} in the untouched copy")
    return thing


def _follow(thing: Any, kind: EdgeKind, name: str) -> Any:
    match kind:
        case EdgeKind.GRAD_FN | EdgeKind.GRAD | EdgeKind.BASE | EdgeKind.VARIABLE:
            return getattr(thing, name or kind.value)
        case EdgeKind.NEXT:
            return dict(autograd.successors(thing))[name]
        case EdgeKind.SAVED:
            return autograd.saved_value(_slot(thing, name))
        case EdgeKind.HOOK if autograd.is_node(thing):
            return dict(autograd.hook_dicts(thing))[name]
        case EdgeKind.NATIVE if peek.is_tensor(thing):
            return autograd.part(thing, name.removesuffix("()"))
        case EdgeKind.CELL:
            return thing.cell_contents
        case _ if name == "__dict__":
            return peek.attributes(thing)
        case _:
            return (peek.attributes(thing) or {})[name]


def _slot(holder: Any, name: str) -> Any:
    """The saved slot of that name; a SavedTensor that stands alone is its own slot."""
    if type(holder) is autograd.SAVED_TYPE:
        return holder
    return dict(autograd.saved_slots(holder))[name]


def _cut_saved(holder: Any, name: str, target: int) -> bool:
    slot.empty(_slot(holder, name))
    return True


def _cut_grad(holder: Any, name: str, target: int) -> bool:
    vars(torch._C.TensorBase)["grad"].__set__(holder, None)
    return True


def _cut_grad_fn(holder: Any, name: str, target: int) -> bool:
    """`detach_()`; views refuse it, so they are given the implementation of their detached twin."""
    try:
        torch.Tensor.detach_(holder)
    except RuntimeError:
        torch._C._swap_tensor_impl(holder, torch.Tensor.detach(holder))
    return True


def _cut_hooks(holder: Any, name: str, target: int) -> bool:
    """All hooks go where the edge leads to their dictionary; one of them is an item like any other."""
    hooks = ctypes.cast(target, ctypes.py_object).value
    if peek.is_a(holder, dict) or not peek.is_a(hooks, dict):
        return False
    dict.clear(hooks)
    return True


def _cut_inside(holder: Any, name: str, target: int) -> bool:
    raise Uncuttable(f"{name or 'this reference'} lies inside C++ and has no setter")


_SPECIAL: dict[EdgeKind, Callable[[Any, str, int], bool]] = {
    EdgeKind.SAVED: _cut_saved,
    EdgeKind.GRAD: _cut_grad,
    EdgeKind.GRAD_FN: _cut_grad_fn,
    EdgeKind.HOOK: _cut_hooks,
    EdgeKind.NEXT: _cut_inside,
    EdgeKind.VARIABLE: _cut_inside,
    EdgeKind.BASE: _cut_inside,
    EdgeKind.STORAGE: _cut_inside,
    EdgeKind.NATIVE: native.release,
}


def _cut_python(holder: Any, reference: Reference) -> bool:
    """Items and attributes through the container's own methods, never an override; all else in the holder's memory."""
    target, count = reference.target, reference.count
    kind = type(holder)
    done = 0
    if issubclass(kind, dict):
        done = _from_dict(holder, target, count, reference.hop.kind is EdgeKind.KEY)
    elif issubclass(kind, (list, deque)):
        done = _from_sequence(holder, target, count)
    else:
        for namespace in _namespaces(holder):
            done += _from_dict(namespace, target, count - done, False)
    return done >= count or done + words.overwrite(holder, target, count - done) >= count


def _namespaces(holder: Any) -> list[dict[Any, Any]]:
    """The dictionaries behind attributes: a class hides its own behind a proxy."""
    if peek.is_class(holder):
        return [found for found in gc.get_referents(holder) if type(found) is dict]
    if threads.is_local(holder):
        return threads.namespaces(holder)
    own = peek.module_dict(holder) if issubclass(type(holder), types.ModuleType) else peek.attributes(holder)
    return [] if own is None else [own]


def _from_dict(holder: dict[Any, Any], target: int, count: int, keys: bool) -> int:
    found = [key for key, value in dict.items(holder) if target == (id(key) if keys else id(value))][:count]
    try:
        for key in found:
            if keys:
                dict.pop(holder, key)
            else:
                dict.__setitem__(holder, key, None)
    except Exception:  # the __hash__ or __eq__ of a key; its memory has neither
        return 0
    return len(found)


def _from_sequence(holder: Any, target: int, count: int) -> int:
    base = list if issubclass(type(holder), list) else deque
    found = [i for i, item in enumerate(base.__iter__(holder)) if id(item) == target][:count]
    for index in found:
        base.__setitem__(holder, index, None)
    return len(found)

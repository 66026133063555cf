"""A live object as a node: kind, qualified type, the label a reader should see, where it was defined, what it can hold."""

from __future__ import annotations

import functools
import os
import types
from collections import deque
from typing import Any, NamedTuple

import torch

from lifetime.files import HERE
from lifetime.heap import autograd, peek
from lifetime.heap.graph import Node, NodeKind, ObjectId, StorageId
from lifetime.heap.model import TensorFacts

_BASES: tuple[tuple[type, str], ...] = (
    (torch.nn.Module, "torch.nn.Module"),
    (torch.nn.Parameter, "torch.nn.Parameter"),
    (torch.optim.Optimizer, "torch.optim.Optimizer"),
)

_CALLABLES = (types.MethodType, functools.partial)
"""Objects that a reader knows by the function in them."""


def node(thing: Any) -> Node:
    """What the report says of `thing`; nothing of it is kept."""
    key = ObjectId(id(thing))
    plain = _plain_kinds.get(id(type(thing)))
    if plain is not None:
        return Node(
            key,
            NodeKind.OBJECT,
            plain.name,
            "",
            plain.where,
            bound=_bound(thing),
            base=plain.base,
            is_hollow=_is_hollow(thing, plain.base),
        )
    if peek.is_tensor(thing):
        return _tensor(thing, key)
    if autograd.is_node(thing):
        return _autograd(thing, key)
    kind, label, where = _named(thing)
    if kind is NodeKind.OBJECT and not label:
        _plain_kinds[id(type(thing))] = _Plain(type(thing), peek.type_name(thing), where, _base(thing))
    base = _base(thing)
    hollow = _is_hollow(thing, base)
    return Node(key, kind, peek.type_name(thing), label, where, bound=_bound(thing), base=base, is_hollow=hollow)


class _Plain(NamedTuple):
    """What all objects of a type have in common. `kind` is kept so that its id stays its own."""

    kind: type
    name: str
    where: str | None
    base: str


_plain_kinds: dict[int, _Plain] = {}


def forget() -> None:
    """Let go of the types that were met."""
    _plain_kinds.clear()


def storage(key: StorageId) -> Node:
    return Node(ObjectId(key), NodeKind.STORAGE, "storage", "storage", storage=key)


def frame(key: ObjectId, function: str, where: str) -> Node:
    """A running function, of which there is no live object here."""
    return Node(key, NodeKind.FRAME, "frame", _plain(function), shown(where))


def native_owner(key: ObjectId, name: str) -> Node:
    """An owner in C++ that has no object at all."""
    return Node(key, NodeKind.OBJECT, "C++", name)


def _tensor(tensor: torch.Tensor, key: ObjectId) -> Node:
    return Node(
        key,
        NodeKind.TENSOR,
        _tensor_type(tensor),
        peek.qualname(type(tensor)).rpartition(".")[2],
        None,
        _facts(tensor),
        base=_base(tensor),
    )


def _tensor_type(tensor: torch.Tensor) -> str:
    name = peek.type_name(tensor)
    return {"torch.nn.parameter.Parameter": "torch.nn.Parameter"}.get(name, name)


def _facts(tensor: torch.Tensor) -> TensorFacts:
    get = vars(torch._C.TensorBase)
    try:
        size = get["untyped_storage"](tensor).nbytes()
    except (NotImplementedError, RuntimeError):
        size = 0
    try:
        shape = tuple(int(n) for n in get["shape"].__get__(tensor))
    except (AttributeError, RuntimeError, TypeError, ValueError):  # a ragged size is no number
        shape = ()
    dtype = str(get["dtype"].__get__(tensor)).removeprefix("torch.")
    return TensorFacts(peek.qualname(type(tensor)), shape, dtype, str(get["device"].__get__(tensor)), size)


def _autograd(thing: Any, key: ObjectId) -> Node:
    kind = type(thing)
    if not autograd.is_python(thing):
        return Node(key, NodeKind.AUTOGRAD, f"torch.autograd.{kind.__name__}", kind.__name__)
    forward: Any = peek.class_attribute(kind, "_forward_cls")
    module = peek.module_name(forward) if peek.is_class(forward) else None
    where = _code_place(peek.class_dict(forward).get("forward")) if peek.is_class(forward) else None
    return Node(key, NodeKind.AUTOGRAD, f"{module or 'torch.autograd'}.{kind.__name__}", kind.__name__, where)


def _named(thing: Any) -> tuple[NodeKind, str, str | None]:
    match thing:
        case _ if peek.is_class(thing):
            return NodeKind.CLASS, peek.qualname(thing), None
        case _ if peek.is_a(thing, types.ModuleType):
            space = peek.module_dict(thing)
            file = space.get("__file__")
            return NodeKind.MODULE, str(space.get("__name__")), shown(file) if type(file) is str else None
        case _ if peek.is_a(thing, types.FunctionType):
            return NodeKind.FUNCTION, _plain(thing.__qualname__), _code_place(thing)
        case _ if _is_wrapped(thing) and peek.is_a(called := _called(thing), types.FunctionType):
            return NodeKind.OBJECT, _plain(called.__qualname__), _code_place(called)
        case _ if peek.is_a(thing, types.FrameType):
            return NodeKind.FRAME, _plain(_qualname(thing.f_code)), shown(f"{thing.f_code.co_filename}:{thing.f_lineno}")
    for name in ("gi_code", "cr_code", "ag_code"):
        if peek.module_name(type(thing)) == "builtins" and name in peek.class_dict(type(thing)):
            code = getattr(thing, name)
            return NodeKind.FRAME, _plain(_qualname(code)), shown(f"{code.co_filename}:{code.co_firstlineno}")
    return NodeKind.OBJECT, "", _class_place(type(thing))


def _called(thing: Any) -> Any:
    """The function of a bound method or of a partial, through partials of partials."""
    while _is_wrapped(thing):
        thing = thing.__func__ if type(thing) is types.MethodType else thing.func
    return thing


def _is_wrapped(thing: object) -> bool:
    """By identity: `in` would ask a metaclass for equality."""
    return any(type(thing) is kind for kind in _CALLABLES)


def _qualname(code: types.CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)


def _plain(qualname: str) -> str:
    """`main.<locals>.grab` is `main.grab` to a reader."""
    return qualname.replace(".<locals>", "")


def _code_place(thing: Any) -> str | None:
    function = getattr(thing, "__func__", thing) if peek.is_a(thing, staticmethod) or peek.is_a(thing, classmethod) else thing
    if not peek.is_a(function, types.FunctionType):
        return None
    return shown(f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}")


def _class_place(kind: type) -> str | None:
    """Where a class of the program is defined, by its first method; nothing for builtin and C types."""
    if not peek.is_heap_type(kind):
        return None
    places = (_code_place(value) for value in peek.class_dict(kind).values())
    return next((place for place in places if place), None)


def shown(place: str) -> str:
    """A path relative to the working directory at the start, absolute outside it: the same in every run."""
    path, colon, line = place.rpartition(":") if place.rpartition(":")[2].isdigit() else (place, "", "")
    full = os.path.normpath(os.path.join(HERE, path)) if not path.startswith("<") else path
    return full.removeprefix(os.path.join(HERE, "")) + colon + line


def _bound(thing: Any) -> int | None:
    if peek.is_a(thing, deque):
        found = deque.maxlen.__get__(thing)
        return found if type(found) is int else None
    if peek.qualname(type(thing)) == "_lru_cache_wrapper":
        most = thing.cache_parameters().get("maxsize")
        return most if type(most) is int else None
    return None


def _is_hollow(thing: Any, base: str) -> bool:
    if base != _BASES[0][1]:
        return False
    own = peek.attributes(thing) or {}
    return not any(own.get(name) for name in ("_parameters", "_buffers", "_modules"))


def _base(thing: Any) -> str:
    return next((name for kind, name in _BASES if peek.is_a(thing, kind)), "")

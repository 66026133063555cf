"""The one way to look at a foreign object: through its type's own slots, never through code that its class brought along.

`__class__`, `__dict__`, `__getattr__`, `__eq__`, `__hash__`, `__repr__` and `__len__` of a traced program may raise, hang,
allocate or lie. Nothing here calls them: types come from `type()`, attributes from the descriptor that CPython itself made.
"""

from __future__ import annotations

import sys
import types
from typing import Any, cast

import torch

from lifetime.heap import memory

LONGEST_TEXT = 40
LARGEST_INT_BITS = 128
TUPLE_PARTS = 4

_class_dict = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_module = type.__dict__["__module__"].__get__
_bases = type.__dict__["__bases__"].__get__
_flags = type.__dict__["__flags__"].__get__
_module_dict = vars(types.ModuleType)["__dict__"].__get__
_subclasses = type.__dict__["__subclasses__"]
_is_subtype = type.__subclasscheck__


def type_of(thing: object) -> type:
    """The real type, whatever `__class__` claims."""
    return type(thing)


def is_a(thing: object, kind: type) -> bool:
    """`isinstance` that believes neither `__class__` nor a metaclass."""
    return _is_subtype(kind, type(thing))


def is_exactly(thing: object, *kinds: type) -> bool:
    """Whether one of `kinds` is its very type. `type(thing) in kinds` would ask a metaclass that defines `__eq__`."""
    return any(type(thing) is kind for kind in kinds)


def is_kind(kind: type, base: type) -> bool:
    """`issubclass` without a metaclass having a say."""
    return _is_subtype(base, kind)


def is_tensor(thing: object) -> bool:
    return _is_subtype(torch.Tensor, type(thing))


def is_class(thing: object) -> bool:
    return _is_subtype(type, type(thing))


def mro(kind: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", _mro(kind))


def subclasses(kind: type) -> list[type]:
    return cast("list[type]", _subclasses(kind))


def class_dict(kind: type) -> types.MappingProxyType[str, Any]:
    """The attributes that the class itself defines."""
    return cast("types.MappingProxyType[str, Any]", _class_dict(kind))


def class_attribute(kind: type, name: str) -> object | None:
    """What `kind.name` is defined as, in the class or a base of it; no descriptor runs."""
    return next((own[name] for own in map(class_dict, mro(kind)) if name in own), None)


def module_dict(module: types.ModuleType) -> dict[str, Any]:
    return cast("dict[str, Any]", _module_dict(module))


def attributes(thing: object) -> dict[str, Any] | None:
    """The instance's own attributes, or None where it has no `__dict__`.

    On 3.11 and 3.12 the first read moves an object's inline values into a dict, which gc then reports in the object's stead: read
    it when the search is over.
    """
    if is_class(thing):
        return dict(class_dict(cast(type, thing)))
    for base in mro(type(thing)):
        own: Any = class_dict(base).get("__dict__")
        if type(own) is types.GetSetDescriptorType or type(own) is types.MemberDescriptorType:
            found = own.__get__(thing)
            return found if type(found) is dict else None
    return None


def slots(thing: object) -> list[tuple[str, object]]:
    """The filled `__slots__`, and the members that a C type publishes (`partial.args`, `method.__self__`)."""
    found = []
    for base in mro(type(thing)):
        for name, member in class_dict(base).items():
            if type(member) is types.MemberDescriptorType:
                try:
                    found.append((name, member.__get__(thing)))
                except AttributeError:
                    continue  # the slot is empty
    return found


def bases(kind: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", _bases(kind))


def is_heap_type(kind: type) -> bool:
    """Whether the class was made while the program ran, not compiled in (`Py_TPFLAGS_HEAPTYPE`)."""
    return bool(_flags(kind) & (1 << 9))


def module_name(kind: type) -> str | None:
    name = _module(kind)
    return name if type(name) is str else None


def qualname(kind: type) -> str:
    return str(_qualname(kind))


def type_name(thing: object) -> str:
    """`train.Trainer`; a builtin and an autograd node go by their bare name."""
    return class_name(type(thing))


def class_name(kind: type) -> str:
    module = module_name(kind)
    name = qualname(kind)
    return name if module in (None, "builtins") or "." in name and name.startswith(f"{module}.") else f"{module}.{name}"


def short(thing: object) -> str:
    """Text for a key or a small value, free of addresses: `'k'`, `(100, 3)`, `<train.Point>`; `<id>` for what `id()` gave."""
    kind = type(thing)
    if kind is int and cast(int, thing).bit_length() > LARGEST_INT_BITS:
        return "<int>"
    if kind is int and memory.is_mapped(cast(int, thing)):
        return "<id>"
    if kind in (str, bytes):
        text = cast("str | bytes", thing)
        return repr(text) if len(text) <= LONGEST_TEXT else repr(text[:LONGEST_TEXT])[:-1] + "...'"
    if thing is None or kind in (int, float, bool, complex):
        return repr(thing)
    if kind is tuple:
        parts = cast("tuple[object, ...]", thing)
        shown = [short(part) if type(part) is not tuple else "(...)" for part in parts[:TUPLE_PARTS]]
        more = ["..."] if len(parts) > TUPLE_PARTS else []
        return f"({', '.join(shown + more)}{',' if len(parts) == 1 else ''})"
    return f"<{class_name(cast(type, thing)) if is_class(thing) else type_name(thing)}>"


def modules() -> list[tuple[str, types.ModuleType]]:
    """The imported modules, those entries of `sys.modules` that really are modules."""
    return [(name, found) for name, found in list(sys.modules.items()) if type(name) is str and is_a(found, types.ModuleType)]

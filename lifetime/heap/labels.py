"""What a reference is called: for every holder that gc can show, how Python would read what it refers to.

A table from type to function; what no function names is `<type internal>`, never nothing.
"""

from __future__ import annotations

import _thread
import contextvars
import gc
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from lifetime.heap import frames, peek, threads
from lifetime.heap.graph import EdgeKind

Name = tuple[EdgeKind, str]
Namer = Callable[[Any, int], Iterator[Name]]
_PLAIN_MODULES = frozenset({"builtins", "_asyncio", "functools", "_functools", "_contextvars", "_weakref", "types", "_queue"})
"""C types of these modules have getters that do nothing but read."""
_EXCEPTION = ("__traceback__", "__cause__", "__context__", "args")
_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def label(holder: Any, target: int) -> Name:
    """How `holder` refers to the object at address `target`; the first way where there are several."""
    for names in _namers(type(holder)):
        for name in names(holder, target):
            return name
    return EdgeKind.INTERNAL, f"<{peek.type_name(holder).rpartition('.')[2]} internal>"


def label_all(holder: Any, targets: Sequence[int]) -> dict[int, Name]:
    """The same for several: in one pass where the holder contains them, however many they are."""
    found: dict[int, Name] = {}
    if len(targets) > 1:
        for target, name in _contained(holder, frozenset(targets)):
            found.setdefault(target, name)
    return {target: found[target] if target in found else label(holder, target) for target in targets}


def _contained(holder: Any, wanted: AbstractSet[int]) -> Iterator[tuple[int, Name]]:
    kind = type(holder)
    if issubclass(kind, dict):
        yield from _entries(holder, wanted)
    elif issubclass(kind, (list, tuple, deque)):
        yield from _items(holder, wanted)
    elif issubclass(kind, (set, frozenset)):
        yield from _members_of_set(holder, wanted)
    elif issubclass(kind, types.ModuleType):
        yield from _globals(holder, wanted)


def _namers(kind: type) -> list[Namer]:
    special = [namer for base, namer in _TABLE if issubclass(kind, base)]
    return [*special, _attributes, _members, _getters]


def _mapping(holder: dict[Any, Any], target: int) -> Iterator[Name]:
    return (name for _, name in _entries(holder, {target}))


def _entries(holder: dict[Any, Any], wanted: AbstractSet[int]) -> Iterator[tuple[int, Name]]:
    for key, value in dict.items(holder):
        if id(value) in wanted:
            yield id(value), (EdgeKind.ITEM, f"[{peek.short(key)}]")
    for key in dict.keys(holder):
        if id(key) in wanted:
            yield id(key), (EdgeKind.KEY, "<key>")


def _sequence(holder: Any, target: int) -> Iterator[Name]:
    return (name for _, name in _items(holder, {target}))


def _items(holder: Any, wanted: AbstractSet[int]) -> Iterator[tuple[int, Name]]:
    base = next(b for b in (list, tuple, deque) if issubclass(type(holder), b))
    fields = _fields(type(holder)) if base is tuple else None
    for index, item in enumerate(base.__iter__(holder)):
        if id(item) in wanted:
            field = fields[index] if type(fields) is tuple and index < len(fields) else None
            yield id(item), (EdgeKind.ATTRIBUTE, f".{field}") if type(field) is str else (EdgeKind.ITEM, f"[{index}]")


def _fields(kind: type) -> object:
    """The names of a named tuple's items, or of a struct sequence's, which C defines (`torch.return_types.max`)."""
    if peek.class_attribute(kind, "n_sequence_fields") is None:
        return peek.class_attribute(kind, "_fields")
    return tuple(name for name, one in peek.class_dict(kind).items() if type(one) is types.MemberDescriptorType)


def _set(holder: Any, target: int) -> Iterator[Name]:
    return (name for _, name in _members_of_set(holder, {target}))


def _members_of_set(holder: Any, wanted: AbstractSet[int]) -> Iterator[tuple[int, Name]]:
    base = set if issubclass(type(holder), set) else frozenset
    return ((id(item), (EdgeKind.KEY, "<item>")) for item in base.__iter__(holder) if id(item) in wanted)


def _cell(holder: types.CellType, target: int) -> Iterator[Name]:
    yield EdgeKind.CELL, ".cell_contents"


def _function(holder: types.FunctionType, target: int) -> Iterator[Name]:
    kinds = {"__closure__": EdgeKind.CLOSURE, "__defaults__": EdgeKind.DEFAULT, "__kwdefaults__": EdgeKind.DEFAULT}
    for name in ("__closure__", "__defaults__", "__kwdefaults__", "__dict__", "__annotations__", "__globals__", "__code__"):
        if id(types.FunctionType.__getattribute__(holder, name)) == target:
            yield kinds.get(name, EdgeKind.ATTRIBUTE), f".{name}"


def _method(holder: types.MethodType, target: int) -> Iterator[Name]:
    for name in ("__self__", "__func__"):
        if id(getattr(holder, name)) == target:
            yield EdgeKind.BOUND, f".{name}"


def _frame(holder: types.FrameType, target: int) -> Iterator[Name]:
    yield from _locals(holder, target, "")
    for name in ("f_back", "f_globals", "f_builtins"):
        if id(getattr(holder, name)) == target:
            yield EdgeKind.TRACEBACK if name == "f_back" else EdgeKind.ATTRIBUTE, f".{name}"
    yield from _running_function(holder, target)


def _running_function(holder: Any, target: int) -> Iterator[Name]:
    """The function object whose call a frame is; Python has no word for it."""
    if any(type(one) is types.FunctionType and id(one) == target for one in gc.get_referents(holder)):
        yield EdgeKind.ATTRIBUTE, "<function>"


def _suspended(holder: Any, target: int) -> Iterator[Name]:
    for prefix in ("gi", "cr", "ag"):
        frame = getattr(holder, f"{prefix}_frame", None)
        if frame is not None:
            yield from _locals(frame, target, f".{prefix}_frame.f_locals")
            if id(frame) == target:
                yield EdgeKind.TRACEBACK, f".{prefix}_frame"
        for name in ("yieldfrom", "await"):
            if id(getattr(holder, f"{prefix}_{name}", None)) == target:
                yield EdgeKind.ATTRIBUTE, f".{prefix}_{name}"
    yield from _running_function(holder, target)


def _locals(frame: types.FrameType, target: int, before: str) -> Iterator[Name]:
    """A variable of a frame; its slot may hold the cell of the variable."""
    for name, address in frames.slots(frame):
        if address == target and name != frames.STACK:
            yield EdgeKind.LOCAL, f"{before}[{name!r}]" if before else f".{name}"
    for name, value in frame.f_locals.items():
        if id(value) == target:
            yield EdgeKind.LOCAL, f"{before}[{name!r}]" if before else f".{name}"


def _traceback(holder: types.TracebackType, target: int) -> Iterator[Name]:
    for name in ("tb_frame", "tb_next"):
        if id(getattr(holder, name)) == target:
            yield EdgeKind.TRACEBACK, f".{name}"


def _exception(holder: BaseException, target: int) -> Iterator[Name]:
    for name in _EXCEPTION:
        if id(getattr(BaseException, name).__get__(holder)) == target:
            yield EdgeKind.TRACEBACK if name == "__traceback__" else EdgeKind.ATTRIBUTE, f".{name}"


def _tensor(holder: torch.Tensor, target: int) -> Iterator[Name]:
    for name in _HOOKS:
        if id(vars(torch._C.TensorBase)[name].__get__(holder)) == target:
            yield EdgeKind.HOOK, f".{name}"


def _class(holder: type, target: int) -> Iterator[Name]:
    if any(id(space) == target for space in gc.get_referents(holder) if type(space) is dict):
        yield EdgeKind.ATTRIBUTE, ".__dict__"
    for name, value in peek.class_dict(holder).items():
        if id(value) == target:
            yield EdgeKind.ATTRIBUTE, f".{name}"
    for name, value in (("__bases__", peek.bases(holder)), ("__mro__", peek.mro(holder))):
        if id(value) == target or any(id(base) == target for base in value):
            yield EdgeKind.ATTRIBUTE, f".{name}"


def _variable(holder: contextvars.ContextVar[Any], target: int) -> Iterator[Name]:
    yield EdgeKind.ATTRIBUTE, "<default>"


def _view(holder: memoryview, target: int) -> Iterator[Name]:
    """Of an array; a buffer of C lies between the two."""
    if any(id(one) == target for one in gc.get_referents(holder)):
        yield EdgeKind.ATTRIBUTE, ".obj"


def _thread_local(holder: Any, target: int) -> Iterator[Name]:
    """An attribute as any of its threads would read it."""
    for space in threads.namespaces(holder):
        for name, value in space.items():
            if id(value) == target:
                yield EdgeKind.ATTRIBUTE, f".{name}"


def _module(holder: types.ModuleType, target: int) -> Iterator[Name]:
    return (name for _, name in _globals(holder, {target}))


def _globals(holder: types.ModuleType, wanted: AbstractSet[int]) -> Iterator[tuple[int, Name]]:
    for name, value in peek.module_dict(holder).items():
        if id(value) in wanted:
            yield id(value), (EdgeKind.GLOBAL, f".{name}")


def _cache(holder: Any, target: int) -> Iterator[Name]:
    if peek.qualname(type(holder)) == "_lru_cache_wrapper" and id(getattr(holder, "__wrapped__", None)) != target:
        yield EdgeKind.ITEM, "<cached result>"


def _ctx(holder: Any, target: int) -> Iterator[Name]:
    for name in ("to_save", "non_differentiable", "dirty_tensors", "needs_input_grad", "metadata"):
        try:
            value = getattr(torch._C._FunctionBase, name).__get__(holder)
        except (AttributeError, RuntimeError):
            continue
        if id(value) == target:
            yield EdgeKind.ATTRIBUTE, f".{name}"


def _attributes(holder: Any, target: int) -> Iterator[Name]:
    if peek.is_class(holder):
        return
    own = peek.attributes(holder)
    if own is None:
        return
    if id(own) == target:
        yield EdgeKind.ATTRIBUTE, ".__dict__"
    for name, value in dict.items(own):
        if id(value) == target:
            yield (
                EdgeKind.ATTRIBUTE,
                f".{name}" if type(name) is str and name.isidentifier() else f".__dict__[{peek.short(name)}]",
            )


def _members(holder: Any, target: int) -> Iterator[Name]:
    for name, value in peek.slots(holder):
        if id(value) == target:
            yield EdgeKind.ATTRIBUTE, f".{name}"


def _getters(holder: Any, target: int) -> Iterator[Name]:
    for base in peek.mro(type(holder)):
        if peek.module_name(base) not in _PLAIN_MODULES:
            continue
        for name, getter in peek.class_dict(base).items():
            if type(getter) is types.GetSetDescriptorType and name != "__dict__":
                try:
                    value = getter.__get__(holder)
                except Exception:  # a C getter of a half-made object
                    continue
                if id(value) == target:
                    yield EdgeKind.ATTRIBUTE, f".{name}"


_TABLE: tuple[tuple[type, Namer], ...] = (
    (dict, _mapping),
    (list, _sequence),
    (tuple, _sequence),
    (deque, _sequence),
    (set, _set),
    (frozenset, _set),
    (types.CellType, _cell),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    (types.FrameType, _frame),
    (types.GeneratorType, _suspended),
    (types.CoroutineType, _suspended),
    (types.AsyncGeneratorType, _suspended),
    (types.TracebackType, _traceback),
    (BaseException, _exception),
    (torch.Tensor, _tensor),
    (type, _class),
    (types.ModuleType, _module),
    (memoryview, _view),
    (_thread._local, _thread_local),
    (contextvars.ContextVar, _variable),
    (torch._C._FunctionBase, _ctx),
    (object, _cache),
)

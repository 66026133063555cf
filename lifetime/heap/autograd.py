"""What a tensor and an autograd node hold in C++, read without running anybody's unpack hook.

gc shows nothing of a C++ node, and a node does not know its predecessors: everything here walks forward. Names read as
Python does.
`_raw_saved_*` gives the slot itself; `_saved_*` would unpack it, which runs user code (recomputation, copies to a device).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from lifetime.heap import closed_slot, peek
from lifetime.heap.graph import EdgeKind, Layer

Node = Any
"""A C++ node's wrapper, or the ctx of a Python `autograd.Function`: they share no base class."""
SavedTensor = Any
"""`torch._C._autograd.SavedTensor`, where this torch has it."""

SAVED_TYPE: type | None = getattr(getattr(torch._C, "_autograd", None), "SavedTensor", None)
_IS_OPEN = hasattr(SAVED_TYPE, "data") and hasattr(SAVED_TYPE, "unpack_hook")
"""Slots show what they hold: torch 2.13 does, 2.9 does not."""
RAW = "_raw_saved_"
SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


QUANTIZER_PARTS = ("q_per_channel_scales", "q_per_channel_zero_points")
TANGENT = "<tangent>"
"""What a dual tensor of forward-mode differentiation keeps beside its value, while the level of the dual is open."""
UNDO = "<undoes the view>"
"""The function that undoes a view of another kind of tensor: it owns what was viewed, which as a rule is the base."""

_TENSOR = vars(torch._C.TensorBase)
"""The attributes that torch itself defines, whatever a subclass puts before them."""


class Reference(NamedTuple):
    """One C++ reference; `target` is alive and strong: let go of it soon."""

    kind: EdgeKind
    name: str
    layer: Layer
    target: Any


_is_wrapped: Callable[[torch.Tensor], bool] = getattr(
    getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False
)
_slot_names: dict[type, tuple[str, ...]] = {}


def slot_names(kind: type) -> tuple[str, ...]:
    """The raw attributes of a node type, in the order of their names."""
    if issubclass(kind, torch._C._FunctionBase):
        return ("_raw_saved_tensors",)  # and not remembered: a Function defined in a loop must be able to die
    if kind not in _slot_names:
        _slot_names[kind] = tuple(sorted(name for name in dir(kind) if name.startswith(RAW)))
    return _slot_names[kind]


def is_python(node: Node) -> bool:
    """True for the ctx of a Python `autograd.Function`, which gc can see."""
    return peek.is_a(node, torch._C._FunctionBase)


def is_node(thing: object) -> bool:
    """True for a node's wrapper of either sort."""
    kind = type(thing)
    return is_python(thing) or (type(kind) is type and "next_functions" in vars(kind) and "_sequence_nr" in vars(kind))


def saved_slots(node: Node) -> list[tuple[str, SavedTensor]]:
    """The saved slots with the names that Python reads them by: `_saved_self`, `_saved_indices[0]`, `saved_tensors[0]`.

    A slot does not own its node: keep the node while a slot is used. After `backward` has freed them there are none, or their
    `.data` is None.
    """
    found: list[tuple[str, SavedTensor]] = []
    if not _IS_OPEN and closed_slot.places() is None:
        return found
    for raw in slot_names(type(node)):
        name = "saved_tensors" if raw == "_raw_saved_tensors" else raw.removeprefix("_raw")
        try:
            value = getattr(node, raw)
        except RuntimeError:
            continue  # freed by backward: a list of slots then refuses, a single slot is empty
        if type(value) is tuple:
            found.extend((f"{name}[{i}]", _slot(node, name, i, slot)) for i, slot in enumerate(value) if slot is not None)
        elif value is not None:
            found.append((name, _slot(node, name, None, value)))
    return found


def _slot(node: Node, name: str, index: int | None, raw: Any) -> SavedTensor:
    return raw if _IS_OPEN else closed_slot.ClosedSlot(node, name, index, raw)


def saved_value(slot: SavedTensor) -> object | None:
    """What the slot holds: a tensor, the object that a pack hook returned, or None once freed and where `what_is_hidden`."""
    try:
        value: object = slot.data
    except (AttributeError, RuntimeError):
        return None
    return value


def unpack_hook(slot: SavedTensor) -> Callable[..., object] | None:
    """The hook of a packed slot, or None. With a hook `saved_value` is a Python reference, without one a C++ owner."""
    try:
        hook: Callable[..., object] | None = slot.unpack_hook
    except (AttributeError, RuntimeError):
        return None
    return hook


def what_is_hidden() -> str | None:
    """What of graphs this torch does not show, in a sentence, or None."""
    if _IS_OPEN or closed_slot.places() is not None:
        return None
    return f"torch {torch.__version__} does not show what a graph saved: a tensor that only a graph keeps is not seen"


def successors(node: Node) -> list[tuple[str, Node]]:
    """The nodes that backward would visit next; they stay after backward."""
    return [(f"next_functions[{i}][0]", entry[0]) for i, entry in enumerate(node.next_functions) if entry[0] is not None]


def variable(node: Node) -> torch.Tensor | None:
    """The leaf of an `AccumulateGrad`, else None."""
    leaf = getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None
    return leaf if peek.is_tensor(leaf) else None


def _nothing(*_: object) -> None:
    return None


def hook_dicts(node: Node) -> list[tuple[str, Mapping[int, object]]]:
    """The dictionaries of the hooks on a node and of its `metadata`, in C++ nodes invisible to gc, without the empty ones.

    It registers a hook and takes it back: for the child only.
    """
    found: list[tuple[str, Mapping[int, object]]] = []
    for name in ("register_prehook", "register_hook"):
        register = getattr(node, name, None)
        if register is None:
            continue
        handle = register(_nothing)
        hooks = handle.hooks_dict_ref()
        handle.remove()
        if hooks:
            found.append((name, hooks))
    notes = getattr(node, "metadata", None)
    if notes:
        found.append(("metadata", notes))
    return found


def open_hooks() -> list[object]:
    """The functions of this thread's `saved_tensors_hooks` that are open, pack and unpack in turn; C++ keeps them on a stack."""
    stack: Any = getattr(torch._C, "_autograd", None)
    pairs = []
    if not hasattr(stack, "_top_saved_tensors_default_hooks"):
        return []
    while (pair := stack._top_saved_tensors_default_hooks(True)) is not None:
        stack._pop_saved_tensors_default_hooks()
        pairs.append(pair)
    for pair in reversed(pairs):
        stack._push_saved_tensors_default_hooks(*pair)
    return [hook for pair in pairs for hook in pair]


def references(thing: Any) -> list[Reference]:
    """What a tensor or a node refers to in C++: storage, graph, gradient, base, saved values and their hooks.

    Call it under `torch._C.DisableTorchFunction`, so that no subclass has a say.
    """
    return _of_tensor(thing) if peek.is_tensor(thing) else _of_node(thing)


def _of_tensor(tensor: torch.Tensor) -> list[Reference]:
    found = [*_storages(tensor), *_wrapped(tensor), *_inside(tensor)]
    base = _get(tensor, "_base")
    if base is not None:
        found.append(Reference(EdgeKind.BASE, "._base", Layer.TENSOR, base))
        if _is_of_another_kind(tensor, base):
            found.append(Reference(EdgeKind.BASE, UNDO, Layer.TENSOR, base))
    if _get(tensor, "requires_grad"):
        node = _get(tensor, "grad_fn")
        if node is not None:
            found.append(Reference(EdgeKind.GRAD_FN, ".grad_fn", Layer.WRAPPER, node))
        if node is None or _get(tensor, "retains_grad"):  # of another tensor torch warns
            grad = _get(tensor, "grad")
            if grad is not None:
                found.append(Reference(EdgeKind.GRAD, ".grad", Layer.TENSOR, grad))
    return found


def _get(tensor: torch.Tensor, name: str) -> Any:
    try:
        return _TENSOR[name].__get__(tensor)
    except RuntimeError:
        return None  # an inference tensor, a functorch wrapper: this one has no such thing


def _storages(tensor: torch.Tensor) -> list[Reference]:
    try:
        storage = _TENSOR["untyped_storage"](tensor)
    except (NotImplementedError, RuntimeError):
        return [Reference(EdgeKind.NATIVE, f".{name}()", Layer.TENSOR, part) for name, part in sparse_parts(tensor)]
    return [Reference(EdgeKind.STORAGE, ".untyped_storage()", Layer.STORAGE, storage)]


def _wrapped(tensor: torch.Tensor) -> list[Reference]:
    """The tensor inside one that a `torch.func` transform wrapped."""
    if not _is_wrapped(tensor):
        return []
    return [Reference(EdgeKind.NATIVE, ".get_unwrapped()", Layer.TENSOR, torch._C._functorch.get_unwrapped(tensor))]


def _inside(tensor: torch.Tensor) -> list[Reference]:
    """The scales of a quantized tensor, and a dual's tangent."""
    names = QUANTIZER_PARTS if _get(tensor, "is_quantized") else ()
    found = [Reference(EdgeKind.NATIVE, f".{name}()", Layer.TENSOR, one) for name, one in _parts(tensor, names)]
    if torch.autograd.forward_ad._current_level >= 0 and peek.is_exactly(tensor, torch.Tensor, torch.nn.Parameter):
        tangents = [one for _, one in _parts(tensor, (TANGENT,)) if one is not None]
        found += [Reference(EdgeKind.NATIVE, TANGENT, Layer.TENSOR, one) for one in tangents]
    return found


def _is_of_another_kind(view: torch.Tensor, base: torch.Tensor) -> bool:
    """Complex and real, conjugated or negated, nested and flat: autograd keeps a function that undoes such a view."""
    return any(_is(view, name) != _is(base, name) for name in ("is_complex", "is_conj", "is_neg")) or (
        _get(view, "is_nested") != _get(base, "is_nested")
    )


def _is(tensor: torch.Tensor, name: str) -> bool:
    answer: bool = _TENSOR[name](tensor)
    return answer


def part(tensor: torch.Tensor, name: str) -> Any:
    """The inner tensor that a NATIVE reference of a tensor named."""
    if name == "get_unwrapped":
        return torch._C._functorch.get_unwrapped(tensor)
    with torch._C._DisableTorchDispatch():  # the program's modes are not to see it
        if name == TANGENT:
            return torch._VF._unpack_dual(tensor, level=torch.autograd.forward_ad._current_level)[1]
        return getattr(torch._C.TensorBase, name)(tensor)


def sparse_parts(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """The index and value tensors of a sparse one, which has no storage of its own."""
    return _parts(tensor, SPARSE_PARTS.get(_get(tensor, "layout"), ()))


def _parts(tensor: torch.Tensor, names: Iterable[str]) -> list[tuple[str, torch.Tensor]]:
    found = []
    for name in names:
        try:
            found.append((name, part(tensor, name)))
        except RuntimeError:
            continue
    return found


def _of_node(node: Node) -> list[Reference]:
    found = [Reference(EdgeKind.NEXT, f".{name}", Layer.WRAPPER, following) for name, following in successors(node)]
    leaf = variable(node)
    if leaf is not None:
        found.append(Reference(EdgeKind.VARIABLE, ".variable", Layer.TENSOR, leaf))
    for name, slot in saved_slots(node):
        value, hook = saved_value(slot), unpack_hook(slot)
        if value is not None:
            found.append(Reference(EdgeKind.SAVED, f".{name}", Layer.TENSOR if hook is None else Layer.WRAPPER, value))
        if hook is not None:
            raw = name.replace("_saved", "_raw_saved", 1) if name.startswith("_saved") else f"_raw_{name}"
            found.append(Reference(EdgeKind.SAVED, f".{raw}.unpack_hook", Layer.WRAPPER, hook))
    return found

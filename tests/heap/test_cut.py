"""Every kind of holder made to let go: the tensor dies in the child and lives in the parent."""

from __future__ import annotations

import collections
import contextvars
import functools
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import cut
from lifetime.heap.cut import Hop, Reference, Uncuttable
from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import fork
from lifetime.heap.graph import EdgeKind, ObjectId, StorageId


def watch(tensor: torch.Tensor) -> Deaths:
    storage = tensor.untyped_storage()
    key = StorageId(storage._cdata)
    return Deaths({key: StorageWeakRef(storage)}, {key: storage.nbytes()})


def dies(holder: Any, target: int, deaths: Deaths, kind: EdgeKind, name: str = "") -> bool:
    """Whether the watched storage dies when `holder` lets go of the object at `target`."""
    reference = Reference(ObjectId(id(holder)), (), Hop(kind, name), ObjectId(target))

    def work() -> bool:
        deaths.guard()
        cut.cut(reference)
        return bool(deaths.since_guard())

    return fork(work, deadline_s=10.0, sealed=True).wait()


class Slots:
    __slots__ = ("held",)


class Plain:
    pass


class Hostile(dict[Any, Any]):
    """Raises wherever a class may."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None


def made(kind: type, tensor: torch.Tensor) -> Any:
    thing = kind()
    thing.held = tensor
    return thing


def suspended(tensor: torch.Tensor) -> Any:
    def generator(kept: torch.Tensor) -> Any:
        yield 1

    found = generator(tensor)
    next(found)
    return found


def finished(tensor: torch.Tensor) -> types.FrameType:
    def fails(box: list[torch.Tensor]) -> None:
        kept = box.pop()
        raise ValueError(kept.numel())

    box = [tensor]
    del tensor
    try:
        fails(box)
    except ValueError as error:
        trace = error.__traceback__
        assert trace is not None and trace.tb_next is not None
        return trace.tb_next.tb_frame
    raise AssertionError


def hamt(tensor: torch.Tensor) -> Any:
    context = contextvars.Context()
    context.run(contextvars.ContextVar[torch.Tensor]("kept").set, tensor)
    found = next(one for one in gc.get_referrers(tensor) if "hamt" in type(one).__name__)
    return found, context


def closure(tensor: torch.Tensor) -> Any:
    def function() -> torch.Tensor:
        return tensor

    return function.__closure__[0]  # type: ignore[index]


def cached(tensor: torch.Tensor) -> Any:
    reference = weakref.ref(tensor)

    @functools.lru_cache(maxsize=4)
    def result() -> Any:
        return reference()

    result()
    return result


HOLDERS: dict[str, tuple[EdgeKind, Callable[[torch.Tensor], Any]]] = {
    "list": (EdgeKind.ITEM, lambda t: [t]),
    "dict": (EdgeKind.ITEM, lambda t: {"k": t}),
    "dict key": (EdgeKind.KEY, lambda t: {t: 1}),
    "hostile dict": (EdgeKind.ITEM, lambda t: Hostile(k=t)),
    "ordered dict": (EdgeKind.ITEM, lambda t: collections.OrderedDict(k=t)),
    "tuple": (EdgeKind.ITEM, lambda t: (1, t)),
    "set": (EdgeKind.KEY, lambda t: {t, 2}),
    "frozenset": (EdgeKind.KEY, lambda t: frozenset([t, 2, 3, 4, 5, 6, 7, 8, 9, 10])),
    "deque": (EdgeKind.ITEM, lambda t: collections.deque([1, t], maxlen=2)),
    "attribute": (EdgeKind.ATTRIBUTE, lambda t: made(Plain, t)),
    "slot": (EdgeKind.ATTRIBUTE, lambda t: made(Slots, t)),
    "class": (EdgeKind.ATTRIBUTE, lambda t: type("Kept", (), {"held": t})),
    "module": (EdgeKind.GLOBAL, lambda t: made(functools.partial(types.ModuleType, "kept"), t)),  # type: ignore[arg-type]
    "cell": (EdgeKind.CELL, closure),
    "partial's arguments": (EdgeKind.ITEM, lambda t: functools.partial(print, t).args),
    "bound method": (EdgeKind.BOUND, lambda t: types.MethodType(print, t)),
    "exception": (EdgeKind.ITEM, lambda t: ValueError(t).args),
    "iterator": (EdgeKind.INTERNAL, lambda t: iter((t,)).__reduce__()[1][0]),
    "slice": (EdgeKind.ATTRIBUTE, lambda t: slice(t, None)),
    "generator": (EdgeKind.LOCAL, suspended),
    "finished frame": (EdgeKind.LOCAL, finished),
    "bounded lru_cache": (EdgeKind.INTERNAL, cached),
    "ndarray": (EdgeKind.ATTRIBUTE, lambda t: t.numpy()),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_python_holder_lets_go(name: str) -> None:
    kind, make = HOLDERS[name]
    tensor = torch.ones(64)
    deaths = watch(tensor)
    holder = make(tensor)
    target = id(holder.base) if name == "ndarray" else id(tensor)
    del tensor
    assert dies(holder, target, deaths, kind)
    deaths.guard()
    assert not deaths.since_guard(), "the parent's tensor lives"


def test_a_context_variable_lets_go() -> None:
    tensor = torch.ones(64)
    deaths, target = watch(tensor), id(tensor)
    holder, context = hamt(tensor)
    del tensor
    assert dies(holder, target, deaths, EdgeKind.INTERNAL)
    del context


def test_a_saved_slot_is_emptied_alone() -> None:
    leaf = torch.ones(64, requires_grad=True)
    hidden = leaf * 2
    deaths = watch(hidden)
    out = hidden.exp().sin().sum()
    node = out.grad_fn.next_functions[0][0].next_functions[0][0]  # type: ignore[union-attr]
    del hidden
    assert "ExpBackward0" in type(node).__name__
    assert not dies(node, 0, deaths, EdgeKind.SAVED, "._saved_result"), "exp saved its result, not its input"


@pytest.mark.parametrize("hook", [False, True])
def test_saved_slots_plain_and_packed(hook: bool) -> None:
    leaf = torch.ones(64, requires_grad=True)
    hidden = leaf * 2
    deaths = watch(hidden)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: (t.detach(), 1), lambda packed: packed[0])
    with hooks if hook else torch.enable_grad():
        out = hidden.pow(3)
    del hidden
    assert dies(out.grad_fn, 0, deaths, EdgeKind.SAVED, "._saved_self")


def test_a_function_keeps_by_its_context() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

    tensor = torch.ones(64, requires_grad=True) * 1
    deaths = watch(tensor)
    out = Twice.apply(tensor)  # type: ignore[no-untyped-call]
    del tensor
    assert dies(out.grad_fn, 0, deaths, EdgeKind.SAVED, ".saved_tensors[0]")


@pytest.mark.parametrize("view", [False, True])
def test_the_graph_of_a_kept_tensor(view: bool) -> None:
    hidden = torch.ones(64, requires_grad=True) * 2
    deaths = watch(hidden)
    out = hidden.pow(3).clone()
    out = out[:1] if view else out
    del hidden
    assert dies(out, 0, deaths, EdgeKind.GRAD_FN, ".grad_fn")


def test_a_gradient() -> None:
    leaf = torch.ones(64, requires_grad=True)
    (leaf * 2).sum().backward()
    deaths = watch(leaf.grad)  # type: ignore[arg-type]
    assert dies(leaf, 0, deaths, EdgeKind.GRAD, ".grad")


def test_the_hooks_of_a_tensor() -> None:
    kept = torch.ones(64)
    deaths = watch(kept)
    leaf = torch.ones(1, requires_grad=True)
    leaf.register_hook(lambda g, kept=kept: g)
    del kept
    hooks: Any = leaf._backward_hooks
    assert dies(leaf, id(hooks), deaths, EdgeKind.HOOK, "._backward_hooks")


def test_what_has_no_cut_says_so() -> None:
    out = torch.ones(4, requires_grad=True) * 2
    reference = Reference(ObjectId(id(out)), (), Hop(EdgeKind.BASE, "._base"), ObjectId(0))
    with pytest.raises(Uncuttable, match="_base lies inside C"):
        cut.cut(reference)


def test_a_path_leads_to_what_has_no_address_before() -> None:
    hidden = torch.ones(64, requires_grad=True) * 2
    deaths = watch(hidden)
    out = hidden.pow(3).sum()
    del hidden
    path = (Hop(EdgeKind.GRAD_FN, ".grad_fn"), Hop(EdgeKind.NEXT, ".next_functions[0][0]"))
    reference = Reference(ObjectId(id(out)), path, Hop(EdgeKind.SAVED, "._saved_self"), ObjectId(0))

    def work() -> bool:
        deaths.guard()
        cut.cut(reference)
        return bool(deaths.since_guard())

    assert fork(work, deadline_s=10.0, sealed=True).wait()

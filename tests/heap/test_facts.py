"""What the code believes of CPython and torch: a release that changes one of these fails here first."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import autograd, frames

OLD = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 10)
counts = pytest.mark.skipif(
    OLD, reason="before 2.10 wrapper and implementation own each other in turn: owners are not counted there"
)


def uses(tensor: torch.Tensor) -> int:
    return int(torch._C.TensorBase._use_count(tensor))  # type: ignore[attr-defined]


def storage_uses(tensor: torch.Tensor) -> int:
    return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))


def references(thing: object) -> int:
    """Those to the wrapper without the caller's variable, the parameter and the argument of the count."""
    return sys.getrefcount(thing) - 3


def leaf() -> torch.Tensor:
    return torch.ones(64, requires_grad=True)


# counts: what ownership is reconciled against


@counts
def test_a_plain_tensor_has_one_owner_in_each_layer() -> None:
    tensor = torch.ones(3)
    assert (uses(tensor), storage_uses(tensor)) == (1, 2), "the storage's wrapper counts too, from the first call on"


def test_a_leaf_squared_has_four() -> None:
    x = leaf()
    y = x * x
    assert uses(x) == 4, "wrapper, two saved slots, AccumulateGrad"
    del y
    assert uses(x) == 1


@counts
def test_another_owner_of_the_implementation_owns_the_wrapper_too() -> None:
    x = leaf()
    alone = references(x)
    y = x * 2
    assert references(x) == alone + 1
    del y
    assert references(x) == alone


@counts
def test_a_view_owns_its_base_and_shares_the_storage() -> None:
    base = torch.ones(4)
    view = base[1:]
    assert (uses(base), uses(view), storage_uses(base)) == (2, 1, 3)


@counts
def test_a_detached_tensor_is_an_owner_of_the_storage_alone() -> None:
    base = torch.ones(4)
    detached = base.detach()
    assert (uses(base), uses(detached), storage_uses(base)) == (1, 1, 3)


@counts
def test_a_saved_output_has_a_private_implementation() -> None:
    out = leaf().exp()
    node: Any = out.grad_fn
    assert (uses(out), storage_uses(out)) == (1, 3)
    value = autograd.saved_value(dict(autograd.saved_slots(node))["_saved_result"])
    assert value is not out


def test_an_index_of_a_sparse_tensor_is_handed_out_as_an_alias() -> None:
    sparse = torch.eye(4).to_sparse()
    assert uses(sparse._indices()) == 1


# references that no gc shows


def test_gc_is_blind_to_the_graph() -> None:
    x = leaf()
    y = (x * x).sum()
    assert gc.get_referents(y.grad_fn) == []
    name, following = autograd.successors(y.grad_fn)[0]
    assert name == "next_functions[0][0]" and type(following).__name__ == "MulBackward0"


def test_a_tensor_in_a_running_function_has_no_referrer() -> None:
    local = torch.ones(3)
    assert not [one for one in gc.get_referrers(local) if type(one).__name__ == "frame"]


def test_reading_a_running_frame_keeps_no_local_alive() -> None:
    if not frames.supported():
        pytest.skip("this Python's frames are not read")
    local = torch.ones(3)
    seen = weakref.ref(local)
    assert dict(frames.slots(sys._getframe()))["local"] == id(local)
    local = torch.zeros(1)
    assert seen() is None


def test_an_ndarray_is_not_tracked_and_its_base_shares_the_data() -> None:
    tensor = torch.ones(3)
    array: Any = tensor.numpy()
    assert not gc.is_tracked(array)
    assert array.base.data_ptr() == tensor.data_ptr()


def test_a_container_of_such_holders_is_not_tracked_either() -> None:
    pair = (torch.ones(3).numpy(), 1)
    gc.collect()
    assert not gc.is_tracked(pair)


@pytest.mark.skipif(OLD, reason="this torch cannot make one")
def test_a_saved_tensor_exists_on_its_own() -> None:
    from torch._C._autograd import _make_saved_tensor

    tensor = torch.ones(3)
    slot: Any = _make_saved_tensor(tensor, False)
    assert not gc.is_tracked(slot) and uses(tensor) == 2 and slot.data is not None


def test_the_hooks_of_a_node_are_one_dictionary() -> None:
    out = leaf() * 2
    handle = out.grad_fn.register_hook(lambda *_: None)  # type: ignore[union-attr]
    assert [len(hooks) for _, hooks in autograd.hook_dicts(out.grad_fn)] == [1]
    handle.remove()


# weak references, cycles, freezing


def test_a_weak_reference_to_a_storage_keeps_nothing_and_holds_its_address() -> None:
    tensor = torch.ones(1 << 12)
    storage = tensor.untyped_storage()
    reference, address = StorageWeakRef(storage), storage._cdata
    del storage, tensor
    assert reference.expired() and reference.cdata == address
    others = [torch.ones(1 << 12) for _ in range(64)]
    assert all(other.untyped_storage()._cdata != address for other in others)


def test_a_storage_can_be_held_by_its_weak_reference() -> None:
    tensor = torch.ones(3)
    reference = StorageWeakRef(tensor.untyped_storage())
    held = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    assert held is tensor.untyped_storage(), "one wrapper a storage"


def test_create_graph_makes_a_cycle_that_gc_never_frees() -> None:
    x = leaf()
    reference = StorageWeakRef(x.untyped_storage())
    (x**3).sum().backward(create_graph=True)
    x_grad = weakref.ref(x)
    del x
    gc.collect()
    assert not reference.expired()
    again = x_grad()
    assert again is not None
    again.grad = None
    del again
    assert reference.expired()


def test_freezing_hides_objects_from_gc() -> None:
    hidden = [object()]
    gc.freeze()
    try:
        assert not any(one is hidden for one in gc.get_referrers(hidden[0]))
    finally:
        gc.unfreeze()
    assert any(one is hidden for one in gc.get_referrers(hidden[0]))


# cuts


def test_registering_hooks_empties_exactly_one_slot() -> None:
    a, b = leaf(), leaf()
    out = a * b
    slots = dict(autograd.saved_slots(out.grad_fn))
    slots["_saved_self"].register_hooks(lambda _: None, lambda packed: packed)
    assert slots["_saved_self"].data is None and slots["_saved_other"].data is b


def test_a_slot_with_hooks_refuses_more() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t,), lambda packed: packed[0]):
        out = leaf().pow(2)
    slot = dict(autograd.saved_slots(out.grad_fn))["_saved_self"]
    with pytest.raises(RuntimeError):
        slot.register_hooks(lambda _: None, lambda packed: packed)
    assert type(slot.data) is tuple and autograd.unpack_hook(slot) is not None


def test_a_view_cannot_be_detached_in_place_but_swapped() -> None:
    view = (leaf() * 2)[1:]
    with pytest.raises(RuntimeError, match="view"):
        view.detach_()
    other = view.detach()
    torch._C._swap_tensor_impl(view, other)
    assert view.grad_fn is None


def test_next_functions_stay_after_backward_and_saved_values_go() -> None:
    out = leaf().pow(2)
    node: Any = out.grad_fn
    out.sum().backward()
    assert node.next_functions[0][0] is not None
    assert all(autograd.saved_value(slot) is None for _, slot in autograd.saved_slots(node))


def test_a_task_is_never_shown_as_the_referrer_of_its_result() -> None:
    """CPython 3.11 alone; the thorough sweep exists for it and needs only that the other direction works."""
    import asyncio

    async def answer() -> list[int]:
        return [1]

    async def run() -> tuple[Any, Any]:
        task = asyncio.ensure_future(answer())
        return task, await task

    task, result = asyncio.run(run())
    assert any(one is result for one in gc.get_referents(task))

"""What the running program's side remembers, and that it disturbs nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import autograd
from lifetime.heap.graph import Death
from lifetime.heap.watch import Watch

SIZE = 1013
BYTES = SIZE * 4


def _collect(automatically: bool) -> None:
    if automatically:
        gc.enable()
    else:
        gc.disable()


@pytest.fixture(params=[True, False], ids=["gc as is", "gc off"])
def watch(request: pytest.FixtureRequest) -> Iterator[Watch]:
    gc.collect()
    enabled = gc.isenabled()
    _collect(request.param)
    yield Watch()
    _collect(enabled)


def born(watch: Watch, step: int) -> list[int]:
    return [seen.nbytes for seen in watch.alive().values() if seen.birth_step == step and seen.nbytes >= BYTES]


def test_births_and_deaths(watch: Watch) -> None:
    watch.observe(0)
    kept = torch.ones(SIZE)
    watch.observe(1)
    more = torch.ones(SIZE)
    watch.observe(2)
    assert born(watch, 1) == [BYTES] and born(watch, 2) == [BYTES]
    del kept
    watch.observe(3)
    assert born(watch, 1) == [] and watch.deaths() == (Death(1, 2, BYTES),)
    watch.forget_before(3)
    assert watch.deaths() == () and born(watch, 2) == []
    del more


def test_a_tensor_that_dies_within_its_step_is_no_death(watch: Watch) -> None:
    watch.observe(0)
    torch.ones(SIZE)
    watch.observe(1)
    assert watch.deaths() == () and born(watch, 1) == []


def test_views_count_once_and_bytes_are_the_whole_storage(watch: Watch) -> None:
    before = watch.observe(0)
    base = torch.ones(SIZE)
    views = [base[:1], base.view(1, SIZE)]
    assert watch.observe(1) - before == BYTES
    del base, views[1]
    assert watch.observe(2) - before == BYTES


def test_gradients_of_old_leaves_and_outputs_without_an_object_are_seen(watch: Watch) -> None:
    leaf = torch.ones(SIZE, requires_grad=True)
    watch.observe(0)
    watch.observe(1)
    torch.autograd.backward((leaf * 2).sum())
    loss = (leaf * 3).exp().sum()
    watch.observe(2)
    assert born(watch, 2) == [BYTES, BYTES]  # .grad, the result that exp saved
    leaf.grad = None
    del loss
    watch.observe(3)
    assert born(watch, 2) == []


def test_bytes_behind_a_bare_storage_or_a_node_are_seen(watch: Watch) -> None:
    watch.observe(0)
    storage = torch.ones(SIZE).untyped_storage()
    leaf = torch.ones(1, requires_grad=True)
    node = (leaf * torch.ones(SIZE)).exp().grad_fn
    watch.observe(1)
    assert len(born(watch, 1)) >= 2
    del storage, node


def test_after_a_collection_or_a_freeze_the_old_tensors_are_not_new(watch: Watch) -> None:
    kept = [torch.ones(SIZE)]
    watch.observe(0)
    kept.append(torch.ones(SIZE))
    gc.collect()
    watch.observe(1)
    assert born(watch, 1) == [BYTES]


def test_the_watch_keeps_nothing_alive(watch: Watch) -> None:
    tensor = torch.ones(SIZE, requires_grad=True)
    result = (tensor * 2).exp()
    refs = [weakref.ref(tensor), weakref.ref(result)]
    saved = StorageWeakRef(autograd.saved_slots(result.grad_fn)[0][1].data.untyped_storage())
    watch.observe(0)
    watch.observe(1)
    del tensor, result
    assert [ref() for ref in refs] == [None, None] and saved.expired()


def test_a_subclass_with_opinions_is_not_asked(watch: Watch) -> None:
    class Rude(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: object, **kwargs: object) -> None:
            raise AssertionError("asked")

        def __getattribute__(self, name: str) -> object:
            raise AssertionError("asked")

    watch.observe(0)
    rude = torch.ones(SIZE).as_subclass(Rude)
    watch.observe(1)
    assert born(watch, 1) == [BYTES]
    del rude


def test_a_tensor_that_torch_may_swap_gets_no_weak_reference() -> None:
    class Wrapper(torch.Tensor):
        def __tensor_flatten__(self) -> None: ...

    gc.collect()
    gc.disable()
    try:
        watch = Watch()
        wrapped = torch.ones(SIZE).as_subclass(Wrapper)
        watch.observe(0)
        watch.observe(1)
        assert weakref.getweakrefcount(wrapped) == 0
    finally:
        gc.enable()

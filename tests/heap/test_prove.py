"""Cuts tried in clean copies of this very process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import prove
from lifetime.heap.cut import Hop, Reference
from lifetime.heap.deaths import Deaths
from lifetime.heap.garbage import collect
from lifetime.heap.graph import EdgeKind, ObjectId, StorageId
from lifetime.heap.prove import Count, Counted, Prover


def watched(*tensors: torch.Tensor) -> Deaths:
    storages = [tensor.untyped_storage() for tensor in tensors]
    keys = [StorageId(one._cdata) for one in storages]
    refs = dict(zip(keys, map(StorageWeakRef, storages), strict=True))
    return Deaths(refs, {key: one.nbytes() for key, one in zip(keys, storages, strict=True)})


def item(holder: Any, target: object) -> Reference:
    return Reference(ObjectId(id(holder)), (), Hop(EdgeKind.ITEM, "[0]"), ObjectId(id(target)))


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_what_died_is_what_really_died() -> None:
    holder = [torch.ones(64)]
    other = [torch.ones(32)]
    deaths = watched(holder[0], other[0])
    prover = Prover(deaths, 30.0)
    outcome = prover.attempt([item(holder, holder[0])], collect=False)
    assert (outcome.frees_bytes, outcome.why, len(outcome.died)) == (256, None, 1)
    both = prover.attempt([item(holder, holder[0]), item(other, other[0])], collect=False)
    assert both.frees_bytes == 256 + 128
    prover.end()
    assert holder[0].sum() == 64


def test_a_second_holder_disproves() -> None:
    tensor = torch.ones(64)
    holder, second = [tensor], {"too": tensor}
    prover = Prover(watched(tensor), 30.0)
    outcome = prover.attempt([item(holder, tensor)], collect=False)
    assert outcome.why is None and not outcome.died
    prover.end()
    assert second


def test_a_finalizer_that_waits_for_a_lost_lock_does_not_spoil_the_proof() -> None:
    lock = threading.Lock()
    lock.acquire()

    class Waits:
        def __init__(self) -> None:
            self.tensor = torch.ones(64)

        def __del__(self) -> None:
            if not lock.acquire(timeout=60):
                raise RuntimeError

    holder = [Waits()]
    prover = Prover(watched(holder[0].tensor), 30.0)
    outcome = prover.attempt([item(holder, holder[0])], collect=False)
    assert outcome.frees_bytes == 256
    prover.end()
    lock.release()


def test_attempts_that_hang_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "ATTEMPT_S", 0.3)
    monkeypatch.setattr("lifetime.heap.cut.cut", lambda _: threading.Event().wait())
    monkeypatch.setattr(prove, "FINALIZERS_S", 60.0)
    prover = Prover(watched(), 30.0)
    reasons = [prover.attempt([], collect=False).why for _ in range(1)]
    outcome = prover.attempt([item([1], 1)], collect=False)
    assert outcome.why is not None and outcome.why.startswith("deadline")
    prover.attempt([item([1], 1)], collect=False)
    assert prover.attempt([item([1], 1)], collect=False).why == "earlier attempts hung until their deadline"
    assert reasons == [None]
    prover.end()


def test_a_prover_that_died_says_so() -> None:
    prover = Prover(watched(), 30.0)
    prover._child.end()
    why = prover.attempt([], collect=False).why
    assert why is not None and "the prover is gone" in why


def test_a_shared_storage_is_let_go_and_never_freed(tmp_path: Path) -> None:
    holder = [torch.ones(64).share_memory_()]
    prover = Prover(watched(holder[0]), 30.0)
    assert prover.attempt([item(holder, holder[0])], collect=False).frees_bytes == 256
    prover.end()
    assert holder[0].sum() == 64 and holder[0].is_shared()


def test_a_shared_storage_with_a_second_holder_is_not_dead() -> None:
    tensor = torch.ones(64).share_memory_()
    holder, storage = [tensor], tensor.untyped_storage()
    prover = Prover(watched(tensor), 30.0)
    target = item(holder, tensor)
    del tensor
    assert not prover.attempt([target], collect=False).died
    prover.end()
    assert storage.nbytes() == 256


def test_a_collection_frees_cycles_in_the_copy_alone() -> None:
    cycle: list[Any] = [torch.ones(64)]
    cycle.append(cycle)
    deaths = watched(cycle[0])
    del cycle
    assert len(collect(deaths, 30.0).wait()) == 1
    deaths.guard()
    assert not deaths.since_guard()
    gc.collect()
    assert len(deaths.since_guard()) == 1


def test_counts_of_a_clean_copy() -> None:
    x = torch.ones(64, requires_grad=True)
    y = x * x
    kept = [x]
    prover = Prover(watched(x), 30.0)
    (counted,) = prover.count([Count(ObjectId(id(x)), (), False)])
    assert isinstance(counted, Counted)
    # The variable, the list, and what C++ adds for its own three owners.
    assert (counted.wrapper, counted.tensor, counted.storage) == (3, 4, 1)
    prover.end()
    assert kept and y is not None


def test_another_way_of_counting_makes_owners_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifetime.heap.calibration._tensor", lambda _: 2)
    tensor = torch.ones(4)
    prover = Prover(watched(tensor), 30.0)
    (answer,) = prover.count([Count(ObjectId(id(tensor)), (), False)])
    assert isinstance(answer, str) and "in a way that is not known" in answer
    prover.end()

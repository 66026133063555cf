"""Holders that gc does not track: named in the chain, owners exact, the cut proved; all in one look."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lifetime.heap import native
from lifetime.heap.callbacks import callbacks
from lifetime.heap.capture import Look
from lifetime.heap.model import Proof
from tests.heap.program import chain_text, is_exact, module_name, traced

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork is needed")
HOLDERS = {
    "array": ("K.append(fresh(i).numpy())", "ndarray.base"),
    "array in a tuple": ("K.append((fresh(i).numpy(), 1))", "tuple[0] ndarray.base"),
    "part of an array": ("K.append(fresh(i).numpy()[1:])", "ndarray.base"),
    "array of objects": ("a = np.empty(2, dtype=object); a[1] = fresh(i); K.append(a)", "ndarray[1]"),
    "array of records": ("K.append(fresh(i).numpy().view(np.recarray))", "recarray.base ndarray.base"),
    "capsule": ("K.append(torch.utils.dlpack.to_dlpack(fresh(i)))", "PyCapsule<dltensor>"),
    "bare storage": ("K.append(fresh(i).untyped_storage())", "K"),
    "sparse": ("K.append(fresh(i).to_sparse())", "Tensor._"),
    "saved tensor alone": ("K.append(torch._C._autograd._make_saved_tensor(fresh(i), False))", "SavedTensor.data"),
}


@pytest.fixture(scope="module")
def seen() -> Look:
    sources = [f"import numpy as np\nK = []\ndef step(i):\n    {line}\n" for line, _ in HOLDERS.values()]
    return traced(*sources)


@pytest.mark.parametrize("name", HOLDERS)
def test_it_is_named_reconciled_and_proved(name: str, seen: Look) -> None:
    module = module_name(list(HOLDERS).index(name))
    own = [s for s in seen.survivors if f"{module}." in chain_text(s)]
    assert len(own) == 1
    assert HOLDERS[name][1] in chain_text(own[0])
    assert is_exact(own[0]), (own[0].owners, own[0].gaps)
    assert own[0].cut.proof is Proof.PROVED, own[0].cut.why


def test_a_future_is_asked_whom_it_will_call() -> None:
    def first(future: object) -> None: ...

    def second(future: object) -> None: ...

    future: torch.futures.Future[None] = torch.futures.Future()
    future.then(first)
    future.add_done_callback(second)
    assert callbacks(future, {id(first), id(second), id(future)}) == [id(first), id(second)]
    assert callbacks(torch.futures.Future(), {id(first)}) == []


def test_many_capsules_in_one_dictionary_are_read_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extension modules publish hundreds of functions so: a time in their square is none."""
    held = {str(k): torch.utils.dlpack.to_dlpack(torch.ones(1)) for k in range(50)}
    assert not gc.is_tracked(held)
    read: list[object] = []
    monkeypatch.setattr(native, "_exported", lambda capsule: read.append(capsule))
    search: Any = SimpleNamespace(dead_ends=lambda: [object()], everything=[[held]], edges={}, bare=lambda _: (), climb_again=list)
    native.climb(search, ())
    assert {id(one) for one in read} == {id(one) for one in held.values()} and len(read) <= 2 * len(held)

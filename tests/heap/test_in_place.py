"""Where no fork is possible the heap is looked at in the program itself: the same holders, no proof, nothing left behind."""

from __future__ import annotations

import gc
import os
import random
import sys
import warnings
import weakref
from collections.abc import Iterator

import pytest
import torch

from lifetime.heap.answer import Child
from lifetime.heap.capture import Look
from lifetime.heap.fork import fork
from lifetime.heap.graph import StorageId
from lifetime.heap.model import Proof
from tests.heap.holders import Holder
from tests.heap.program import ROWS, chain_text, traced
from tests.heap.test_readers import TOGETHER, check_chain
from tests.heap.test_rude import RUDE

WHY = "no fork on this platform"
NEEDS_A_COPY = {
    "node hook", "node prehook", "metadata of a node",  # a hook is registered and taken back
    "atexit", "atexit function", "jit constant",  # emptied, to see what dies
    "weakkey dead",  # collected, to see what dies though a root leads to it
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def no_fork() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lifetime.heap.fork.cannot_fork", lambda: WHY)
        yield


@pytest.fixture(scope="module")
def seen(no_fork: None) -> Look:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return traced(*(holder.source for holder in TOGETHER))


@pytest.mark.parametrize("holder", [one for one in TOGETHER if one.name not in NEEDS_A_COPY], ids=lambda holder: holder.name)
def test_the_chain_names_the_holder(holder: Holder, seen: Look) -> None:
    check_chain(holder, seen)


def test_what_is_left_out_has_a_reason(seen: Look) -> None:
    assert {one.cut.proof for one in seen.survivors} == {Proof.NOT_TRIED} and {one.owners for one in seen.survivors} == {None}
    assert all(f"not counted: {WHY}" in [gap.why for gap in one.gaps] for one in seen.survivors)
    assert [gap.why for gap in seen.gaps if gap.where == "proof and owners"] == [
        f"looked without a fork, nothing was cut or counted: {WHY}"
    ]


def test_rude_objects_are_named_and_never_asked() -> None:
    (one,) = traced(RUDE).survivors
    text = chain_text(one)
    assert "KEPT" in text and "RudeList[0]" in text and "RudeDict['rude']" in text and "Rude.payload" in text, text


def test_the_program_goes_on_as_before() -> None:
    class Local:
        pass

    random.seed(1)
    torch.manual_seed(1)
    state, seeds, interval, enabled = random.getstate(), torch.get_rng_state(), sys.getswitchinterval(), gc.isenabled()
    kept = Local()
    kept.tensor, gone = torch.ones(5), weakref.ref(Local)  # type: ignore[attr-defined]
    count = sys.getrefcount(kept)
    assert traced("KEPT = []\ndef step(i): KEPT.append(fresh(i))").survivors
    assert (sys.getswitchinterval(), gc.isenabled(), sys.getrefcount(kept)) == (interval, enabled, count)
    assert random.getstate() == state and torch.equal(torch.get_rng_state(), seeds)
    ref = weakref.ref(kept.tensor)  # type: ignore[attr-defined]
    del kept, Local
    assert ref() is None
    gc.collect()
    assert gone() is None


def test_where_no_collection_could_be_tried_cycles_are_known_by_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer(*_: object) -> Child[frozenset[StorageId]]:
        return fork(lambda: os._exit(0), deadline_s=10.0)

    monkeypatch.setattr("lifetime.heap.fork.cannot_fork", lambda: None)
    monkeypatch.setattr("lifetime.heap.capture.collect", no_answer)
    look = traced(
        "class Node: pass\ndef step(i):\n    node = Node(); node.me, node.tensor = node, fresh(i)",
        "def step(i):\n    h = (W * 2.0).tanh()\n    h.register_hook(lambda g: g * h)",
    )
    verdicts = {one.tensor.shape: one.verdict.value for one in look.survivors}
    assert verdicts == {(ROWS, 1): "until-gc", (ROWS, 2): "growing"}
    assert any(gap.where == "garbage" and "read off the graph" in gap.why for gap in look.gaps)

"""Objects that raise, lie or hang when they are touched hurt neither the look nor the program."""

from __future__ import annotations

import _thread
import gc
import random
import sys
import threading
import weakref

import pytest
import torch

from lifetime.heap import frames, peek, threads
from lifetime.heap.model import Proof
from lifetime.heap.watch import Watch
from tests.heap.program import chain_text, traced

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork is needed")

RUDE = """
class Meta(type):
    def __hash__(c): raise RuntimeError("asked")
    def __eq__(c, o): raise RuntimeError("asked")
    def __subclasscheck__(c, o): raise RuntimeError("asked")
    def __instancecheck__(c, o): raise RuntimeError("asked")
    def __getattribute__(c, n): raise RuntimeError("asked")
    def __repr__(c): raise RuntimeError("asked")

def no(*a, **k): raise RuntimeError("asked")

class Rude(metaclass=Meta):
    __class__ = property(no)
    __getattribute__ = __getattr__ = __eq__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = no
    def __init__(s, t): object.__setattr__(s, 'payload', t)
    def __hash__(s): return 1

class RudeDict(dict):
    __iter__ = __getitem__ = items = keys = values = __len__ = __contains__ = __eq__ = __repr__ = no

class RudeList(list):
    __iter__ = __getitem__ = __len__ = __contains__ = __eq__ = __repr__ = no

KEPT = []
def step(i):
    box = RudeDict()
    dict.__setitem__(box, 'rude', object.__new__(Rude))
    object.__setattr__(dict.__getitem__(box, 'rude'), 'payload', fresh(i))
    row = RudeList()
    list.append(row, box)
    KEPT.append(row)
"""


def test_rude_objects_are_named_and_never_asked() -> None:
    look = traced(RUDE)
    (survivor,) = look.survivors
    text = chain_text(survivor)
    assert "KEPT" in text and "RudeList[0]" in text and "RudeDict['rude']" in text and "Rude.payload" in text, text


def test_short_text_never_calls_the_object() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("asked")

    assert peek.short((Loud(), 1, "k")) == f"(<{__name__}.test_short_text_never_calls_the_object.<locals>.Loud>, 1, 'k')"
    assert peek.short(1 << 5000) == "<int>" and peek.short("x" * 100).endswith("...'")


def test_reading_frames_keeps_no_local_alive_and_caches_nothing() -> None:
    def inner() -> weakref.ref[torch.Tensor]:
        local = torch.ones(3)
        ref = weakref.ref(local)
        assert any(name == "local" for frame in frames.running() for name, _ in frame.slots)
        del local
        return ref

    if not frames.supported():
        pytest.skip("this Python's frames are not read from outside")
    assert inner()() is None


def test_the_program_goes_on_as_before() -> None:
    random.seed(1)
    torch.manual_seed(1)
    state, seeds, enabled, before = random.getstate(), torch.get_rng_state(), gc.isenabled(), gc.get_count()[2]
    kept = [torch.ones(5)]
    ref = weakref.ref(kept[0])
    traced("KEPT = []\ndef step(i): KEPT.append(fresh(i))")
    assert random.getstate() == state and torch.equal(torch.get_rng_state(), seeds)
    assert gc.isenabled() == enabled and gc.get_freeze_count() == 0 and before >= 0
    kept.clear()
    assert ref() is None


def test_the_instant_of_the_fork_leaves_no_reference_behind() -> None:
    local = _thread._local()
    local.tensor = torch.ones(3)
    ref, count = weakref.ref(local.tensor), sys.getrefcount(local)
    with threads.held():
        pass
    assert sys.getrefcount(local) == count
    del local
    assert ref() is None


def test_a_look_at_nothing_forks_nothing() -> None:
    watch = Watch()
    watch.observe(0)
    assert traced("def step(i): fresh(i)").survivors == ()


def test_a_chain_longer_than_the_search_and_frozen_objects_are_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifetime.heap.search.MOST_LEVELS", 1)
    look = traced("KEPT = []\ndef step(i):\n    gc.freeze()\n    KEPT.append([[[fresh(i)]]])")
    gc.unfreeze()
    assert {"search", "gc.freeze"} <= {gap.where for gap in look.gaps}


def test_what_threads_might_own_is_held_for_them_only_where_nobody_else_does() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, daemon=True)
    thread.start()
    try:
        look = traced(
            "VAR = contextvars.ContextVar('current')\nKEPT = []\n"
            "def step(i):\n    c = contextvars.copy_context(); c.run(VAR.set, fresh(i)); KEPT.append(c)"
        )
    finally:
        stop.set()
        thread.join()
    (survivor,) = look.survivors
    assert survivor.cut.proof is Proof.PROVED and "KEPT" in chain_text(survivor)

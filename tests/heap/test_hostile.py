"""Programs whose objects lie, raise, hang and allocate; heaps that change, freeze and come back while they are looked at."""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from lifetime.heap import frames
from lifetime.heap.capture import Look, look
from lifetime.heap.graph import History
from lifetime.heap.model import Proof, Survivor, Verdict
from lifetime.heap.watch import Watch
from tests.heap.program import STEPS, chain_text, traced

BOOM = """
import time
def boom(*args, **kwargs):
    raise RuntimeError('asked')
def hang(*args, **kwargs):
    time.sleep(3600)
GREEDY = []
def allocate(*args, **kwargs):
    GREEDY.append(torch.ones(4096))
    raise AttributeError
"""

HOLDERS = {
    "raises": """
class Raises:
    __getattr__ = __eq__ = __repr__ = __str__ = __len__ = __bool__ = __iter__ = __contains__ = __getitem__ = __dir__ = boom
    __hash__ = boom
    def __init__(self, t): self.held = t
def hold(t): KEPT.append(Raises(t))
""",
    "hangs": """
class Hangs:
    __getattr__ = __eq__ = __repr__ = __len__ = __bool__ = __iter__ = __sizeof__ = hang
    __hash__ = hang
    def __init__(self, t): self.held = t
def hold(t): KEPT.append(Hangs(t))
""",
    "allocates": """
class Allocates:
    __getattribute__ = __getattr__ = allocate
    def __init__(self, t): object.__setattr__(self, 'held', t)
def hold(t): KEPT.append(Allocates(t))
""",
    "claims to be a tensor": """
class Claims:
    __class__ = property(lambda self: torch.Tensor)
    def __init__(self, t): self.held = t
def hold(t): KEPT.append(Claims(t))
""",
    "class raises": """
class Classless:
    __class__ = property(boom)
    def __init__(self, t): self.held = t
def hold(t): KEPT.append(Classless(t))
""",
    "dict raises": """
class Dictless:
    __dict__ = property(boom)
    def __init__(self, t): self.held = t
def hold(t): KEPT.append(Dictless(t))
""",
    "slots with a getattribute": """
class Slotted:
    __slots__ = ('held',)
    __getattribute__ = boom
    def __init__(self, t): type(self).held.__set__(self, t)
def hold(t): KEPT.append(Slotted(t))
""",
    "metaclass refuses": """
class Meta(type):
    __hash__ = __eq__ = __instancecheck__ = __subclasscheck__ = __getattribute__ = __repr__ = boom
class Refused(metaclass=Meta): pass
def hold(t):
    one = object.__new__(Refused)
    object.__setattr__(one, 'held', t)
    KEPT.append(one)
""",
    "key": """
class Key:
    angry = False
    def __hash__(self): return boom() if Key.angry else 1
    def __eq__(self, other): return boom() if Key.angry else self is other
    __repr__ = boom
KEYED = {}
def hold(t):
    Key.angry = False
    KEYED[Key()] = t
    Key.angry = True
""",
    "dict subclass": """
class Odd(dict):
    items = keys = values = get = __iter__ = __len__ = __getitem__ = __setitem__ = __contains__ = __eq__ = boom
ODD = Odd()
def hold(t): dict.__setitem__(ODD, dict.__len__(ODD), t)
""",
    "list subclass": """
class Row(list):
    __iter__ = __len__ = __getitem__ = __setitem__ = __eq__ = __bool__ = boom
ROW = Row()
def hold(t): list.append(ROW, t)
""",
    "mock": """
import unittest.mock
MOCK = unittest.mock.MagicMock()
def hold(t): MOCK.method(t)
""",
    "proxy": """
class Proxy:
    def __init__(self, t): object.__setattr__(self, '_target', t)
    def __getattribute__(self, name): return getattr(object.__getattribute__(self, '_target'), name)
    __class__ = property(lambda self: type(object.__getattribute__(self, '_target')))
PROXIES = []
def hold(t): PROXIES.append(Proxy(t)); PROXIES.append(weakref.proxy(t))
""",
    "module that is none": """
class Lazy:
    __getattr__ = boom
    def __init__(self): self.kept = []
LAZY = Lazy()
sys.modules['lazy_thing'] = LAZY
def hold(t): LAZY.kept.append(t)
""",
    "tensor subclass": """
class Opinion(torch.Tensor):
    __torch_function__ = classmethod(boom)
    __getattribute__ = __getattr__ = __repr__ = __len__ = __eq__ = boom
OPINIONS = []
def hold(t): OPINIONS.append(torch.Tensor.as_subclass(t, Opinion))
""",
}
NAMES = ("Raises", "Hangs", "Allocates", "Claims", "Classless", "Dictless", "Slotted", "Refused", "KEYED", "ODD", "ROW", "MOCK")
LAST_NAMES = ("Proxy", "LAZY", "OPINIONS")
WORDS = dict(zip(HOLDERS, NAMES + LAST_NAMES, strict=True))
FIRST_SIZE = 1009


def _size(case: str) -> int:
    return FIRST_SIZE + list(HOLDERS).index(case)


def _lettered() -> list[tuple[str, str]]:
    """By letters: names that differ in digits alone look the same to a fingerprint."""
    return list(zip("abcdefghijklmnopqrstuvwxyz", HOLDERS.values(), strict=False))


@functools.lru_cache(maxsize=1)
def _all() -> Look:
    """All of them in one program and one look; each holds tensors of its own size."""
    parts = [f"KEPT_{c} = []\n" + source.replace("hold(", f"hold_{c}(").replace("KEPT", f"KEPT_{c}") for c, source in _lettered()]
    steps = [f"    hold_{c}(torch.full(({FIRST_SIZE + k},), float(i)))" for k, (c, _) in enumerate(_lettered())]
    done = "def done():\n    sys.modules.pop('lazy_thing', None)"
    return traced("\n".join([BOOM, *parts, "def step(i):", *steps, done]))


def _of_size(seen: Look, size: int) -> Survivor:
    found = [one for one in seen.survivors if one.tensor.shape == (size,)]
    assert len(found) == 1, [chain_text(one) for one in seen.survivors]
    return found[0]


@pytest.mark.parametrize("case", HOLDERS)
def test_a_hostile_holder_is_named_and_not_asked(case: str) -> None:
    found = _of_size(_all(), _size(case))
    assert found.verdict is Verdict.GROWING and WORDS[case] in chain_text(found), chain_text(found)
    assert found.cut.proof is Proof.PROVED, found.cut.why
    owners = found.owners
    assert owners is not None and all(one.named == one.counted for one in (owners.wrapper, owners.tensor, owners.storage)), owners


def test_nobody_was_made_to_allocate() -> None:
    assert not [one for one in _all().survivors if one.tensor.storage_bytes == 4 * 4096]


def only(seen: Look) -> Survivor:
    assert len(seen.survivors) == 1, [chain_text(one) for one in seen.survivors] + [str(gap) for gap in seen.gaps]
    return seen.survivors[0]


def test_a_list_of_a_million() -> None:
    found = only(traced("BIG = [None] * 1_000_000\ndef step(i):\n    BIG[1000 * i] = fresh(i)"))
    assert "BIG" in chain_text(found) and found.cut.proof is Proof.PROVED


def test_resurrection_is_disproof_and_not_a_crash() -> None:
    source = """
GRAVE, KEPT = [], []
class Phoenix:
    def __init__(self, t): self.held = t
    def __del__(self): GRAVE.append(self)
def step(i): KEPT.append(Phoenix(fresh(i)))
def done(): Phoenix.__del__ = lambda self: None
"""
    found = only(traced(source))
    assert "Phoenix" in chain_text(found) and found.cut.proof is Proof.DISPROVED, found.cut


@pytest.fixture
def restless() -> Iterator[list[Any]]:
    """A thread that makes and drops containers, tensors and graphs all the time."""
    stop = threading.Event()
    kept: list[Any] = []

    def run() -> None:
        weight = torch.ones(8, requires_grad=True)
        while not stop.is_set():
            kept[:] = [{"t": (weight * k).exp()} for k in range(20)]
            kept.clear()

    thread = threading.Thread(target=run, name="restless", daemon=True)
    thread.start()
    yield kept
    stop.set()
    thread.join()


def test_a_heap_that_other_threads_change(restless: list[Any]) -> None:
    for _ in range(2):
        seen = traced("KEPT = []\ndef step(i):\n    KEPT.append(fresh(i))")
        found = [one for one in seen.survivors if one.verdict is Verdict.GROWING]
        assert len(found) == 1 and "KEPT" in chain_text(found[0]) and found[0].cut.proof is Proof.PROVED


FROZEN = """
KEPT = []
class Ring: pass
def step(i):
    ring = Ring(); ring.me = ring; ring.held = fresh(i)
    KEPT.append(fresh(i))
    if i == 4: gc.freeze()
def done(): gc.unfreeze()
"""


def test_what_the_program_froze_is_seen() -> None:
    seen = traced(FROZEN)
    verdicts = {one.verdict: chain_text(one) for one in seen.survivors}
    assert set(verdicts) == {Verdict.GROWING, Verdict.UNTIL_GC}, verdicts
    assert "KEPT" in verdicts[Verdict.GROWING] and "Ring" in verdicts[Verdict.UNTIL_GC]


def _watched(keep: Callable[[int], object]) -> tuple[Watch, History]:
    watch = Watch()
    for index in range(STEPS):
        keep(index)
        watch.observe(index)
    return watch, History(1, STEPS - 1, watch.deaths())


def test_a_look_from_within_a_collection() -> None:
    kept: list[torch.Tensor] = []
    watch, history = _watched(lambda index: kept.append(torch.full((997,), float(index))))
    seen: list[Look] = []

    def callback(phase: str, info: Any) -> None:
        if phase == "stop" and not seen:
            watch.observe(STEPS)
            seen.append(look(watch.alive(), history, prove=True, deadline_s=30.0).wait())

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert "kept" in chain_text(_of_size(seen[0], 997))


APIS: list[tuple[Any, str]] = [
    (torch._C, "_storage_Use_Count"),
    (torch._C, "_swap_tensor_impl"),
    (torch._C, "_get_accelerator"),
]


@pytest.mark.parametrize(("owner", "name"), APIS, ids=[name for _, name in APIS])
def test_a_private_name_that_this_torch_lacks_is_a_gap(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    weight = torch.ones(983, requires_grad=True)
    watch, history = _watched(lambda index: kept.append(weight.expand(2, 983)[0] * index))
    monkeypatch.delattr(owner, name)
    seen = look(watch.alive(), history, prove=True, deadline_s=30.0).wait()
    told = [one for one in seen.survivors if one.tensor.shape == (983,)]
    exact = [one for one in told if one.owners is not None and one.cut.proof is Proof.PROVED]
    assert exact or any(name in gap.why for gap in [*seen.gaps, *(gap for one in told for gap in one.gaps)]), seen


def test_frames_that_cannot_be_read_are_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[torch.Tensor] = []
    watch, history = _watched(lambda index: kept.append(torch.full((977,), float(index))))
    monkeypatch.setattr(frames, "_works", False)
    seen = look(watch.alive(), history, prove=True, deadline_s=30.0).wait()
    assert any(gap.where == "running frames" for gap in seen.gaps)


def test_a_child_that_never_answers_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    from lifetime.heap import capture

    kept: list[torch.Tensor] = []
    watch, history = _watched(lambda index: kept.append(torch.full((971,), float(index))))
    monkeypatch.setattr(capture, "survey", lambda *arguments: time.sleep(3600))
    seen = look(watch.alive(), history, prove=True, deadline_s=1.0).wait()
    assert seen.survivors == () and "deadline" in seen.gaps[0].why

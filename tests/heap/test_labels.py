"""No referent without a label: whatever gc shows of a common object has a name that Python reads."""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import logging
import queue
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from lifetime.heap.labels import label


class Plain:
    table: Any = []

    def __init__(self) -> None:
        self.payload = [1]

    def method(self) -> None: ...


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self) -> None:
        self.left = [1]


@dataclasses.dataclass
class Batch:
    image: list[int]


Pair = collections.namedtuple("Pair", "x y")


def generator(held: list[int]) -> Iterator[None]:
    yield


def function(x: Any = [], *, y: Any = []) -> Any:  # noqa: B006
    return x, y


function.__annotations__ = {}  # 3.11 keeps them as a tuple of text until they are read


def closed() -> Any:
    seen = [1]
    return lambda: seen


def raised() -> BaseException:
    try:
        scratch = [1]
        raise ValueError(scratch)
    except ValueError as error:
        return error


def started() -> Any:
    one = generator([1])
    next(one)
    return one


HOLDERS = {
    "dict": {"k": [1]},
    "list": [[1]],
    "tuple": ([1],),
    "set": {(1, (2,))},
    "deque": collections.deque([[1]]),
    "instance": Plain(),
    "class": Plain,
    "slots": Slotted(),
    "dataclass": Batch([1]),
    "named tuple": Pair([1], [2]),
    "function": function,
    "closure": closed(),
    "cell": closed().__closure__[0],
    "bound method": Plain().method,
    "partial": functools.partial(print, [1], end=[2]),
    "exception": raised(),
    "traceback": raised().__traceback__,
    "generator": started(),
    "module": types.ModuleType("some"),
    "queue": queue.Queue(),
    "thread": threading.Thread(target=print, args=([1],)),
    "log record": logging.makeLogRecord({"args": ([1],)}),
    "weak key dictionary": weakref.WeakKeyDictionary(),
    "namespace": types.SimpleNamespace(x=[1]),
    "property": property(lambda self: self),
    "module of torch": torch.nn.Linear(1, 1),
    "optimizer": torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0),
    "memoryview": memoryview(bytearray(3)),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_every_referent_has_a_name(holder: Any) -> None:
    for target in gc.get_referents(holder):
        if target is not type(holder) and type(target) is not str:
            kind, name = label(holder, id(target))
            assert name.startswith((".", "[", "<key>", "<item>", "<function>")) and "internal" not in name, (type(target), name)


def test_names_read_as_python_does() -> None:
    value = [1]
    pair = Pair(value, 0)
    plain = Plain()
    plain.payload = value
    assert label({"k": value}, id(value))[1] == "['k']"
    assert label({(100, 3): value}, id(value))[1] == "[(100, 3)]"
    assert label([0, value], id(value))[1] == "[1]"
    assert label(pair, id(value))[1] == ".x"
    assert label(plain, id(value))[1] == ".payload"
    assert label(torch.ones(2, 2).max(dim=0), 0)[1] == "<max internal>"


@pytest.mark.skipif(sys.platform != "linux", reason="a map of memory is needed")
def test_an_id_is_no_key_to_print_and_a_large_number_is() -> None:
    value = [1]
    assert label({id(value): value}, id(value))[1] == "[<id>]"
    assert label({10**14 + 1: value}, id(value))[1] == "[100000000000001]"
    assert label({4096: value}, id(value))[1] == "[4096]"

"""What a `torch.futures.Future` is to call when it is done: C++ keeps the functions, and no API lists them.

Source: aten/src/ATen/core/ivalue_inl.h (`Future::callbacks_`, a vector of `std::function`), torch/csrc/jit/python/pybind_utils.h
(`PythonFunctionGuard`). Where these lie is measured, once, on a future of our own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from lifetime.heap.memory import WORD, Memory

Future = Any
"""`torch._C.Future` of whatever value."""

_MOST_BYTES = 1 << 14
"""Of a vector of callbacks: some four hundred."""
_CLOSURE_BYTES = 8 * WORD
"""More than what a callback's closure in C++ needs."""


class _Layout(NamedTuple):
    """Offsets: in the wrapper, in what that wraps, and in the future."""

    wrapper: int
    wrapped: int
    vector: int


_LIKELY = [_Layout(a, b, c) for a in range(16, 64, WORD) for b in range(0, 48, WORD) for c in range(64, 400, WORD)]


def callbacks(future: Future, wanted: Collection[int]) -> list[int]:
    """The addresses among `wanted` of functions that the future is to call. On Linux; elsewhere none are found."""
    layout = _measured()
    memory = Memory()
    found = dict.fromkeys(one for one in _at(memory, future, layout) if one in wanted) if layout is not None else {}
    memory.end()
    return list(found)


def _at(memory: Memory, future: Future, layout: _Layout) -> Iterator[int]:
    """What the closures in the vector at these offsets refer to."""
    words = memory.words
    for wrapped in words(id(future) + layout.wrapper, WORD):
        for inner in words(wrapped + layout.wrapped, WORD):
            begin, end, room = words(inner + layout.vector, 3 * WORD) or (0, 0, 0)
            if 0 < begin < end <= room and (end - begin) % WORD == 0 and end - begin <= _MOST_BYTES:
                closures = (word for one in words(begin, end - begin) for word in words(one, _CLOSURE_BYTES))
                yield from (function for guard in closures for function in words(guard, WORD))


@lru_cache(maxsize=1)
def _measured() -> _Layout | None:
    """The offsets that are right for every one of some futures: right for one alone they may be by chance."""
    probes = [_probe(count) for count in (0, 1, 3, 2, 0)]
    memory = Memory()
    found = next((one for one in _LIKELY if all(_is_right(memory, one, *probe) for probe in probes)), None)
    memory.end()
    return found


def _probe(count: int) -> tuple[Future, list[Any]]:
    """A future and the functions that it is to call."""
    future: torch.futures.Future[None] = torch.futures.Future()
    functions: list[Any] = [lambda _, k=k: k for k in range(count)]
    for function in functions:
        future.add_done_callback(function)
    return future, functions


def _is_right(memory: Memory, layout: _Layout, future: Future, functions: list[Any]) -> bool:
    found = list(dict.fromkeys(_at(memory, future, layout)))
    wanted = [id(function) for function in functions]
    return [one for one in found if one in wanted] == wanted and bool(found) == bool(wanted)

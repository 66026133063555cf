"""Small programs traced within this process: each text becomes a module, their `step`s run seven times, then comes the look."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from lifetime.heap.capture import Look, look
from lifetime.heap.graph import History
from lifetime.heap.model import Survivor
from lifetime.heap.watch import Watch

STEPS = 7
ROWS = 61
PRELUDE = """
import collections, contextlib, contextvars, dataclasses, functools, gc, queue, sys, threading, types, weakref
import torch

def fresh(i):
    return torch.full(SHAPE, float(i + 1))

W = torch.ones(SHAPE, requires_grad=True)
"""


def traced(*sources: str, prove: bool = True) -> Look:
    """What one look shows after seven steps of all the programs, with automatic collection off as `--gc off` has it.

    Program k is the module `module_name(k)`; its tensors have the shape (61, k + 1).
    """
    with ExitStack() as stack:
        modules = [stack.enter_context(_module(source, k)) for k, source in enumerate(sources)]
        stack.enter_context(_collected_by_hand())
        watch = Watch()
        for index in range(STEPS):
            for module in modules:
                module.step(index)
            watch.observe(index)
        return look(watch.alive(), History(1, STEPS - 1, watch.deaths()), prove=prove, deadline_s=100.0).wait()


@contextmanager
def _module(source: str, number: int) -> Iterator[Any]:
    name = module_name(number)
    module: Any = types.ModuleType(name)
    module.__file__ = f"{name}.py"
    module.SHAPE = (ROWS, number + 1)
    sys.modules[name] = module
    try:
        exec(compile(PRELUDE + source, f"{name}.py", "exec"), vars(module))
        yield module
    finally:
        getattr(module, "done", lambda: None)()
        del sys.modules[name]
        vars(module).clear()


@contextmanager
def _collected_by_hand() -> Iterator[None]:
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
        gc.collect()


def module_name(number: int) -> str:
    """Without a digit: leaks whose names differ in a number only are one leak."""
    return f"program_{chr(97 + number // 26)}{chr(97 + number % 26)}"


def words(survivor: Survivor) -> str:
    """Every string of the chain: what a reader could see."""
    return " ".join(_strings(asdict(survivor.chain)))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _strings(one)


def chain_text(survivor: Survivor) -> str:
    """The chain on one line: root, then holder and reference again and again."""
    root = survivor.chain.root
    links = "".join(f" {link.holder}{link.reference}" for link in survivor.chain.links)
    return f"{root.kind.value} {root.name}:{links}"


def is_exact(survivor: Survivor) -> bool:
    """As many owners named as counted, in every layer."""
    owners = survivor.owners
    return owners is not None and all(x.named == x.counted for x in (owners.wrapper, owners.tensor, owners.storage))

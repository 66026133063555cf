"""A small program traced within this process: its text becomes a module, its `step` runs seven times, then comes the look."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lifetime.heap.capture import Look, look
from lifetime.heap.graph import History
from lifetime.heap.model import Survivor
from lifetime.heap.watch import Watch

STEPS = 7
PRELUDE = """
import collections, contextlib, contextvars, dataclasses, functools, gc, queue, sys, threading, types, weakref
import torch
SHAPE = (61, 7)
def fresh(i):
    return torch.full(SHAPE, float(i + 1))
W = torch.ones(SHAPE, requires_grad=True)
"""


def traced(source: str, name: str = "program", prove: bool = True) -> Look:
    """What one look shows after seven steps of the program, with automatic collection off as `--gc off` has it."""
    with _module(source, name) as module, _collected_by_hand():
        watch = Watch()
        for index in range(STEPS):
            module.step(index)
            watch.observe(index)
        return look(watch.alive(), History(1, STEPS - 1, watch.deaths()), prove=prove, deadline_s=60.0).wait()


@contextmanager
def _module(source: str, name: str) -> Iterator[Any]:
    module = types.ModuleType(name)
    module.__file__ = f"{name}.py"
    sys.modules[name] = module
    try:
        exec(compile(PRELUDE + source, f"{name}.py", "exec"), vars(module))
        yield module
    finally:
        del sys.modules[name]
        getattr(module, "done", lambda: None)()
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

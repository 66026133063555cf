"""Owners in C++ that nothing lists: named by what dies when they are told to let go, in a clean copy.

Each has a public way to be emptied and none to be read: PyTorch's autocast cache, the constants of scripted functions, the
results of a profiler, the last exception of a thread.
"""

from __future__ import annotations

import atexit
import gc
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch

from lifetime.heap import peek

MOST_FUNCTIONS = 24
"""Of those that atexit is to call, so many are asked about: each costs a copy of the process."""


@dataclass(frozen=True)
class Owner:
    """`is_there` is asked first: it is cheap. `release` empties the owner and is called in a copy only."""

    name: str
    is_there: Callable[[], bool]
    release: Callable[[], None]


def owners() -> list[str]:
    """The names of the owners that this process has."""
    return unlisted() + _registered()


def unlisted() -> list[str]:
    """Those of them that are no functions registered to be called."""
    return [owner.name for owner in OWNERS if owner.is_there()]


def release(name: str) -> None:
    """Empty the owner of that name."""
    owner = next((owner for owner in OWNERS if owner.name == name), None)
    if owner is not None:
        owner.release()
    else:
        atexit.unregister(cast(Any, _Met(name)))


def _autocasts() -> bool:
    """Whether a `torch.autocast` is open: with the outermost one its cache is emptied."""
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return depth > 0


def _autocast_cache() -> None:
    torch.clear_autocast_cache()


def _scripted() -> bool:
    state = sys.modules.get("torch.jit._state")
    return state is not None and bool(state._python_cu.get_functions())


def _drop_scripted() -> None:
    sys.modules["torch.jit._state"]._python_cu.drop_all_functions()


def _profilers() -> list[object]:
    module = sys.modules.get("torch.autograd.profiler")
    kind = getattr(module, "profile", None)
    return [one for one in gc.get_referrers(kind) if type(one) is kind] if kind is not None else []


def _drop_profiles() -> None:
    for profiler in _profilers():
        profiler.kineto_results = None  # type: ignore[attr-defined]


def _registered() -> list[str]:
    """The functions that atexit is to call, by name. It lists none, but compares each with one that is to be taken away."""
    met = _Met()
    atexit.unregister(cast(Any, met))
    return list(dict.fromkeys(met.names))[:MOST_FUNCTIONS]


class _Met:
    """Equal to the functions of that name."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self.names: list[str] = []

    def __eq__(self, function: object) -> bool:
        self.names.append(f"atexit.register({_name(function)})")
        return self.names[-1] == self._name

    __hash__ = None  # type: ignore[assignment]


def _name(function: Any) -> str:
    plain = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
    is_plain = any(type(function) is kind for kind in plain)
    return function.__qualname__ if is_plain else peek.type_name(function)


OWNERS: tuple[Owner, ...] = (
    Owner("at::autocast cached_casts (an outer torch.autocast is still open)", _autocasts, _autocast_cache),
    Owner("constants of scripted functions (torch.jit CompilationUnit)", _scripted, _drop_scripted),
    Owner("results of torch.autograd.profiler (kineto_results)", lambda: bool(_profilers()), _drop_profiles),
)

"""Owners in C++ that nothing lists: named by what dies when they are told to let go, in a clean copy.

Each has a public way to be emptied and none to be read: PyTorch's autocast cache, the constants of scripted functions, the
results of a profiler, the last exception of a thread.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Owner:
    """`is_there` is asked first: it is cheap. `release` empties the owner and is called in a copy only."""

    name: str
    is_there: Callable[[], bool]
    release: Callable[[], None]


def owners() -> list[str]:
    """The names of the owners that this process has."""
    return [owner.name for owner in OWNERS if owner.is_there()]


def release(name: str) -> None:
    """Empty the owner of that name."""
    next(owner for owner in OWNERS if owner.name == name).release()


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


def _drop_atexit() -> None:
    atexit._clear()  # runs none of them


OWNERS: tuple[Owner, ...] = (
    Owner("at::autocast cached_casts (an outer torch.autocast is still open)", torch.is_autocast_cache_enabled, _autocast_cache),
    Owner("functions registered with atexit", lambda: atexit._ncallbacks() > 0, _drop_atexit),
    Owner("constants of scripted functions (torch.jit CompilationUnit)", _scripted, _drop_scripted),
    Owner("results of torch.autograd.profiler (kineto_results)", lambda: bool(_profilers()), _drop_profiles),
)

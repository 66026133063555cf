"""Who reads `.grad` of a watched leaf after its harvest: observed in Python; reads from C++ cannot be seen.

`torch.Tensor` inherits `grad` from C++. From the first hit of a site until the trace is over a descriptor of the same
behaviour shadows it and notes reads of watched leaves; it is in nobody's way before and after.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import Counter, defaultdict
from typing import Any

import torch
from torch.overrides import get_default_nowrap_functions

from lifetime.tracer.spots import Spot, shown

_Place = tuple[str, int, str]
_SLOT: Any = vars(torch._C.TensorBase)["grad"]


def unseen_grad(leaf: torch.Tensor) -> torch.Tensor | None:
    """`leaf.grad`, read without being noted."""
    gradient: torch.Tensor | None = _SLOT.__get__(leaf)
    return gradient


class Reads:
    def __init__(self) -> None:
        self._followed: dict[int, tuple[weakref.ref[Any], str, Spot]] = {}
        self._counts: defaultdict[str, Counter[_Place]] = defaultdict(Counter)
        self._installed = False

    def follow(self, leaf: torch.Tensor, key: str, spot: Spot) -> None:
        """From now on reads of `leaf.grad` count, but for those on the site's own lines: they are the harvest."""
        identity = id(leaf)
        if not self._installed:
            self._install()
        forget = weakref.ref(leaf, lambda _: self._followed.pop(identity, None) and None)
        self._followed[identity] = (forget, key, spot)

    def of(self, key: str) -> Counter[_Place]:
        return self._counts[key]

    def remove(self) -> None:
        if self._installed:
            self._installed = False
            self._followed.clear()
            del torch.Tensor.grad
            get_default_nowrap_functions.cache_clear()

    def _install(self) -> None:
        self._installed = True
        torch.Tensor.grad = _Grad(self)  # type: ignore[assignment]
        # torch compares with `Tensor.grad.__get__` by identity, and remembers what it was.
        get_default_nowrap_functions.cache_clear()

    def note(self, identity: int) -> None:
        _, key, spot = self._followed[identity]
        frame = sys._getframe(2)
        code = frame.f_code
        is_harvest = code.co_filename == spot.file and spot.line <= frame.f_lineno <= spot.end_line
        if not is_harvest:
            function = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has the bare name
            self._counts[key][shown(code.co_filename), frame.f_lineno, function] += 1


class _Grad:
    """`torch.Tensor.grad`, with an eye on the leaves that are followed."""

    __name__ = "grad"
    __objclass__ = torch._C.TensorBase
    __doc__ = _SLOT.__doc__

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._followed = reads._followed
        self._get, self._set, self._delete = _SLOT.__get__, _SLOT.__set__, _SLOT.__delete__

    def __get__(self, leaf: Any, owner: Any = None) -> Any:
        if leaf is None:
            return self
        if id(leaf) in self._followed:
            self._reads.note(id(leaf))
        elif type(leaf) is torch.Tensor and not leaf.is_leaf:
            return self._of_no_leaf(leaf)
        return self._get(leaf)

    def _of_no_leaf(self, tensor: Any) -> Any:
        """torch warns of such a read, at the innermost line of Python: that must stay the reader's line."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            value = self._get(tensor)
        for one in seen:
            warnings.warn(one.message, stacklevel=3)
        return value

    def __set__(self, leaf: Any, value: Any) -> None:
        self._set(leaf, value)

    def __delete__(self, leaf: Any) -> None:
        self._delete(leaf)

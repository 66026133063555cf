"""Whether this torch counts owners as we believe: shown on tensors whose owners are known, before any other is counted.

Source: torch >= 2.10 (pytorch#167564): a wrapper always owns its TensorImpl, and is owned by it once that has another owner.
Before, ownership flipped between the two; there the counts are not to be trusted, and owners are reported as unknown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def why_not() -> str | None:
    """Why counts cannot be trusted here, or None."""
    try:
        with torch.inference_mode(False), torch.enable_grad(), _saved_as_they_are():
            wrong = [name for name, seen, expected in _samples() if seen != expected]
    except (AttributeError, RuntimeError, TypeError) as error:
        return f"owners cannot be counted on torch {torch.__version__}: {error}"
    more = f" and of {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"torch {torch.__version__} counts the owners of {wrong[0]}{more} in a way that is not known" if wrong else None


@contextmanager
def _saved_as_they_are() -> Iterator[None]:
    """What is saved here no open `saved_tensors_hooks` of the program gets to see."""
    rest = getattr(getattr(torch._C, "_autograd", None), "_saved_tensors_hooks_set_tracing", lambda tracing: False)
    before = rest(True)
    try:
        yield
    finally:
        rest(before)


def _samples() -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """(what, counts seen, counts expected); a wrapper's count has the variable and the argument in it."""
    leaf = torch.ones(2, requires_grad=True, device="cpu")
    alone = sys.getrefcount(leaf)
    square = leaf * leaf
    base = torch.ones(2, device="cpu")
    view, detached = base[1:], base.detach()
    saved = leaf.exp()
    return [
        ("a leaf that was squared", (_tensor(leaf), sys.getrefcount(leaf) - alone), (4, 1)),
        ("a base of a view", (_tensor(base), _storage(base)), (2, 4)),
        ("a view", (_tensor(view), _storage(view)), (1, 4)),
        ("a detached tensor", (_tensor(detached), _storage(detached)), (1, 4)),
        ("a saved output", (_tensor(saved), _storage(saved)), (1, 3)),
        ("a plain result", (_tensor(square), _storage(square)), (1, 2)),
    ]


def _tensor(tensor: torch.Tensor) -> int:
    return int(torch._C.TensorBase._use_count(tensor))  # type: ignore[attr-defined]


def _storage(tensor: torch.Tensor) -> int:
    return int(torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))

"""Saved values read where slots do not show them: the same on every torch, so tried on whichever runs the suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from lifetime.heap import autograd, closed_slot, slot


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this torch showed nothing."""
    monkeypatch.setattr(autograd, "_IS_OPEN", False)


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


def never(_: object) -> torch.Tensor:
    raise AssertionError("a hook of the program ran")


class Both(torch.autograd.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = x * 2
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def slots(out: torch.Tensor) -> dict[str, Any]:
    return dict(autograd.saved_slots(out.grad_fn))


def test_where_a_slot_keeps_its_hooks_is_found_out() -> None:
    assert closed_slot.places() is not None and autograd.what_is_hidden() is None


def test_a_saved_input_is_the_very_tensor() -> None:
    x = leaf()
    out = x * x
    assert {name: autograd.saved_value(one) is x for name, one in slots(out).items()} == {"_saved_other": True, "_saved_self": True}


def test_a_saved_output_shares_the_storage_and_closes_no_cycle() -> None:
    out = leaf().exp()
    value: Any = autograd.saved_value(slots(out)["_saved_result"])
    assert value.data_ptr() == out.data_ptr() and value is not out and value.grad_fn is None


def test_a_packed_value_is_read_and_no_hook_runs() -> None:
    packed = object()
    with torch.autograd.graph.saved_tensors_hooks(lambda _: packed, never):
        out = leaf().pow(2)
    one = slots(out)["_saved_self"]
    assert autograd.saved_value(one) is packed and autograd.unpack_hook(one) is never


def test_an_unpacked_slot_has_no_hook() -> None:
    assert autograd.unpack_hook(slots(leaf().pow(2))["_saved_self"]) is None


def test_the_slots_of_a_function_of_the_program() -> None:
    x = leaf()
    out: torch.Tensor = Both.apply(x)  # type: ignore[no-untyped-call]
    values: dict[str, Any] = {name: autograd.saved_value(one) for name, one in slots(out).items()}
    assert values["saved_tensors[0]"] is x
    assert values["saved_tensors[1]"].data_ptr() == out.data_ptr() and values["saved_tensors[1]"].grad_fn is None


def test_a_function_that_unpacks_all_or_none_is_not_asked_where_one_has_hooks() -> None:
    out: torch.Tensor = Both.apply(leaf())  # type: ignore[no-untyped-call]
    slots(out)["saved_tensors[0]"].register_hooks(lambda _: "packed", never)
    assert [autograd.saved_value(one) for one in slots(out).values()] == ["packed", None]


def test_a_list_of_slots() -> None:
    rows, columns = torch.tensor([0, 1]), torch.tensor([1, 0])
    out = torch.ones(2, 2, requires_grad=True)[rows, columns]
    found: dict[str, Any] = {name: autograd.saved_value(one) for name, one in slots(out).items()}
    assert [found[f"_saved_indices[{i}]"].tolist() for i in range(2)] == [[0, 1], [1, 0]]


def test_what_backward_freed_is_gone() -> None:
    out = leaf().pow(2)
    node: Any = out.grad_fn
    out.sum().backward()
    assert [autograd.saved_value(one) for _, one in autograd.saved_slots(node)] == [None]


def packed_and_plain() -> Iterator[torch.Tensor]:
    yield leaf().pow(2)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: [tensor], lambda packed: packed[0]):
        yield leaf().pow(2)


@pytest.mark.parametrize("out", list(packed_and_plain()), ids=["plain", "packed"])
def test_a_slot_can_be_emptied(out: torch.Tensor) -> None:
    slot.empty(slots(out)["_saved_self"])
    assert autograd.saved_value(slots(out)["_saved_self"]) is None


def test_a_torch_whose_slots_lie_otherwise_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closed_slot, "places", lambda: None)
    out = leaf().pow(2)
    assert slots(out) == {} and "does not show what a graph saved" in (autograd.what_is_hidden() or "")

"""What torch lets us read of a node: each fact that the search stands on, so that a release that changes it fails here."""

from __future__ import annotations

from typing import Any

import torch

from lifetime.heap import autograd


def weight() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


class Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


def apply(x: torch.Tensor) -> torch.Tensor:
    return Keep.apply(x)  # type: ignore[no-untyped-call,no-any-return]


def names(node: autograd.Node) -> list[str]:
    return [name for name, _ in autograd.saved_slots(node)]


def test_slots_read_as_python_reads_them() -> None:
    w = weight()
    assert names((w * w).grad_fn) == ["_saved_other", "_saved_self"]
    assert names(w[torch.tensor([0])].grad_fn) == ["_saved_indices[0]"]
    assert names(apply(w).grad_fn) == ["saved_tensors[0]"]


def test_a_slot_gives_the_very_tensor_and_nothing_once_freed() -> None:
    w = weight()
    y = w.pow(3)
    node = y.grad_fn
    slot = dict(autograd.saved_slots(node))["_saved_self"]
    assert autograd.saved_value(slot) is w and autograd.unpack_hook(slot) is None
    torch.autograd.backward(y.sum())
    assert [autograd.saved_value(slot) for _, slot in autograd.saved_slots(node)] == [None]


def test_freed_lists_and_functions_have_no_slots() -> None:
    for y in (apply(weight()), weight()[torch.tensor([0])]):
        node = y.grad_fn
        torch.autograd.backward(y.sum())
        assert autograd.saved_slots(node) == []


def test_a_packed_slot_shows_what_was_packed_without_unpacking() -> None:
    unpacked = []

    def unpack(box: list[torch.Tensor]) -> torch.Tensor:
        unpacked.append(box)
        return box[0]

    with torch.autograd.graph.saved_tensors_hooks(lambda t: [t], unpack):
        y = weight().exp()
    ((_, slot),) = autograd.saved_slots(y.grad_fn)
    assert type(autograd.saved_value(slot)) is list and autograd.unpack_hook(slot) is unpack
    assert not unpacked


def test_successors_end_in_the_leaf() -> None:
    w = weight()
    ((name, node),) = autograd.successors((w * 2).grad_fn)
    assert name == "next_functions[0][0]" and autograd.variable(node) is w
    assert autograd.variable((w * 2).grad_fn) is None and autograd.is_node(node)


def test_hooks_of_a_node_are_listed_and_left_alone() -> None:
    w = weight()
    node = (w * 2).grad_fn
    assert node is not None and autograd.hook_dicts(node) == []

    def hook(*_: object) -> None:
        return None

    node.register_hook(hook)
    ((kind, hooks),) = autograd.hook_dicts(node)
    assert kind == "register_hook" and list(hooks.values()) == [hook]
    assert autograd.is_python(apply(w).grad_fn) and not autograd.is_python(node)

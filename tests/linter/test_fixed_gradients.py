"""A fix changes what is kept, never what is computed: examples run before and after it, their gradients compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lifetime.linter import registry
from lifetime.linter.fixer import fix_source

pytest.importorskip("torch")
import torch
import torch.nn.functional as F
from torch import nn

Drive = Callable[[dict[str, Any], nn.Linear], list[torch.Tensor]]


def batches(n: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.full((2, 4), 0.1 * k), torch.full((2, 4), 0.2)) for k in range(1, n + 1)]


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [p.grad for p in model.parameters() if p.grad is not None]


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [p.detach() for p in model.parameters()]


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.1)


def apply(space: dict[str, Any], *inputs: Any) -> list[torch.Tensor]:
    tensors = [x.requires_grad_() for x in inputs if isinstance(x, torch.Tensor)]
    space["F"].apply(*inputs).sum().backward()
    return [x.grad for x in tensors if x.grad is not None]


def train(space: dict[str, Any], model: nn.Linear) -> list[torch.Tensor]:
    space["train"](model, batches(), sgd(model))
    return weights(model) + gradients(model)


def train_with_loss(space: dict[str, Any], model: nn.Linear) -> list[torch.Tensor]:
    total = space["train"](model, F.mse_loss, batches(), sgd(model))
    return [*weights(model), *gradients(model), total.detach()]


def average(space: dict[str, Any], model: nn.Linear) -> list[torch.Tensor]:
    space["train"](model, F.mse_loss, batches())
    return gradients(model)


def gan(space: dict[str, Any], model: nn.Linear) -> list[torch.Tensor]:
    other = nn.Linear(4, 4)
    nn.init.eye_(other.weight)
    space["gan"](model, other, torch.ones(2, 4), torch.ones(2, 4))
    return gradients(model) + gradients(other)


def two(space: dict[str, Any], model: nn.Linear) -> list[torch.Tensor]:
    space["two"](model, torch.ones(2, 4), torch.zeros(2, 4))
    return gradients(model)


DRIVERS: dict[tuple[str, int], Drive] = {
    ("LT004", 0): lambda space, _: apply(space, torch.linspace(0, 1, 4)),
    ("LT004", 1): lambda space, _: apply(space, torch.ones(2, 3), torch.full((3, 2), 0.5)),
    ("LT004", 4): lambda space, _: apply(space, torch.linspace(1, 2, 4), 3),
    ("LT008", 0): lambda space, model: (space["train"](model, sgd(model), batches()), weights(model))[1],
    ("LT008", 1): lambda space, model: [torch.tensor(space["curvature"](nn.Sequential(model, nn.Tanh()), torch.ones(2, 4)))],
    ("LT009", 0): train_with_loss,
    ("LT009", 2): lambda space, model: [space["outputs"](model, [x for x, _ in batches()])],
    ("LT009", 3): average,
    ("LT010", 0): train,
    ("LT010", 1): lambda space, model: [space["saliency"](model, torch.ones(2, 4))],
    ("LT010", 2): gan,
    ("LT010", 3): two,
}


def outcomes(source: str, drive: Drive) -> Iterator[torch.Tensor]:
    torch.manual_seed(0)
    space: dict[str, Any] = {}
    exec(compile(source, "example.py", "exec"), space)
    yield from drive(space, nn.Linear(4, 4))


@pytest.mark.parametrize(("code", "number"), DRIVERS)
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_fix_leaves_every_gradient_as_it_was(code: str, number: int) -> None:
    rule = next(rule for rule in registry.load() if rule.code == code)
    before = rule.bad[number].source
    after, *_ = fix_source(before, "example.py", select=[code], unsafe=True)
    assert after != before
    drive = DRIVERS[code, number]
    pairs = list(zip(outcomes(before, drive), outcomes(after, drive), strict=True))
    assert pairs and all(torch.equal(x, y) for x, y in pairs)

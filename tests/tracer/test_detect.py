"""One step a step: where boundaries fall for the loops that people write, counted in this process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from lifetime.tracer import detect
from lifetime.tracer.detect import Detector

STEPS = 5


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None], str | None], int]]:
    gc.collect()
    # Optimizers that other tests of this process keep would be waited for: a program has none of those.
    before, live = detect._live_optimizers(), detect._live_optimizers
    monkeypatch.setattr(detect, "_live_optimizers", lambda: [one for one in live() if not any(one is old for old in before)])
    installed: list[Detector] = []

    def counted(step: Callable[[], None], mode: str | None = None, steps: int = STEPS, quiet: bool = False) -> int:
        seen: list[int] = []
        detector = Detector(mode, lambda: seen.append(1), lambda: quiet)
        detector.install()
        installed.append(detector)
        for _ in range(steps):
            step()
        return len(seen)

    yield counted
    for detector in installed:
        detector.remove()


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_a_plain_loop(count: Callable[..., int]) -> None:
    model = net()
    optimizer = sgd(model)

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    # The last step ends where the next begins.
    assert count(step) == STEPS - 1
    assert count(step, quiet=True) == STEPS - 1


def test_gradient_accumulation(count: Callable[..., int]) -> None:
    model = net()
    optimizer = sgd(model)

    def step() -> None:
        for _ in range(4):
            model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    assert count(step) == STEPS - 1


def test_chained_optimizers_and_subgroups(count: Callable[..., int]) -> None:
    model = net()
    optimizers = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()

    assert count(step) == STEPS - 1


def test_two_networks_in_turn(count: Callable[..., int]) -> None:
    critic, generator = net(), net()
    critics, generators = sgd(critic), sgd(generator)

    def step() -> None:
        critic(torch.ones(2, 3)).sum().backward()
        critics.step()
        generator(torch.ones(2, 3)).sum().backward()
        generators.step()

    assert count(step) == STEPS - 1


def test_several_critic_steps_for_one_of_the_generator(count: Callable[..., int]) -> None:
    critic, generator = net(), net()
    critics, generators = sgd(critic), sgd(generator)

    def step() -> None:
        for _ in range(3):
            critic(torch.ones(2, 3)).sum().backward()
            critics.step()
        generator(torch.ones(2, 3)).sum().backward()
        generators.step()

    # Each critic step is one step; the first is spent on learning that the generator is not to be waited for.
    assert count(step, steps=4) == 4 * 3 - 1


def test_an_optimizer_that_never_steps_is_not_waited_for(count: Callable[..., int]) -> None:
    model, other = net(), net()
    optimizer, idle = sgd(model), sgd(other)

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    assert count(step) == STEPS - 2
    del idle


def test_a_second_phase_with_another_optimizer(count: Callable[..., int]) -> None:
    model = net()
    turns = iter([sgd(model)] * 4 + [sgd(model)] * 6)

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        next(turns).step()

    assert count(step, steps=10) >= 6


def test_functional_code_without_modules(count: Callable[..., int]) -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight])

    def step() -> None:
        (weight * 2).sum().backward()
        optimizer.step()

    assert count(step) == STEPS - 1


def test_no_optimizer_at_all(count: Callable[..., int]) -> None:
    weight = torch.ones(3, requires_grad=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lifetime.tracer.detect.optimizer_classes", list)
        assert count(lambda: (weight * 2).sum().backward()) == STEPS


def test_nested_backward_is_inside(count: Callable[..., int]) -> None:
    from torch.utils.checkpoint import checkpoint

    model = net()

    def step() -> None:
        checkpoint(model, torch.ones(2, 3, requires_grad=True), use_reentrant=True).sum().backward()

    assert count(step, "backward") == STEPS


def test_a_gradient_penalty_is_inside(count: Callable[..., int]) -> None:
    model = net()

    def step() -> None:
        x = torch.ones(2, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        (slope.pow(2).sum() + model(x).sum()).backward()

    assert count(step, "backward") == STEPS


def test_a_backward_that_fails_is_no_step_and_does_not_count_for_the_next(count: Callable[..., int]) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, *grads: torch.Tensor) -> torch.Tensor:
            raise ValueError("no")

    weight = torch.ones(3, requires_grad=True)

    def step() -> None:
        with pytest.raises(ValueError):
            Fails.apply(weight).sum().backward()  # type: ignore[no-untyped-call]
        (weight * 2).sum().backward()

    assert count(step, "backward") == STEPS


def test_in_another_thread(count: Callable[..., int]) -> None:
    weight = torch.ones(3, requires_grad=True)

    def step() -> None:
        thread = threading.Thread(target=lambda: (weight * 2).sum().backward())
        thread.start()
        thread.join()

    assert count(step, "backward") == STEPS


def test_a_compiled_module_is_not_disturbed(count: Callable[..., int], recwarn: pytest.WarningsRecorder) -> None:
    plain = net()
    optimizer = sgd(plain)
    model = torch.compile(plain, backend="eager")

    def step() -> None:
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    assert count(step) == STEPS - 1
    assert not [one for one in recwarn if "global hooks" in str(one.message)]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_nothing_is_left_behind() -> None:
    from torch.nn.modules import module
    from torch.optim import optimizer

    run = torch.autograd._engine_run_backward
    detector = Detector(None, lambda: None)
    detector.install()
    model = net()
    step = sgd(model)
    model(torch.ones(2, 3)).sum().backward()
    step.step()
    detector.remove()
    assert torch.autograd._engine_run_backward is run
    assert not optimizer._global_optimizer_post_hooks and not module._global_forward_pre_hooks

"""On a device: the same recomputing backward captured and replayed as it is, with a bare release and with a guarded one.

Runs only where there is a GPU (pytest -m cuda).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

Release = Callable[[torch.Tensor], None]
SIZE = 1 << 16


def keep(leaf: torch.Tensor) -> None:
    pass


def bare(leaf: torch.Tensor) -> None:
    leaf.grad = None


def guarded(leaf: torch.Tensor) -> None:
    if not torch.cuda.is_current_stream_capturing():
        leaf.grad = None


def recompute(release: Release, held: list[torch.Tensor]) -> Any:
    """A Function that re-runs `x * x` on a detached leaf; somebody keeps the leaf."""

    class Recompute(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor | None:
            leaf = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                out = leaf * leaf
            torch.autograd.backward(out, grad)
            harvested: torch.Tensor | None = leaf.grad
            held.append(leaf)
            release(leaf)
            return harvested

    return Recompute


def captured(work: Callable[[], torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """The graph of `work` after a warm-up on a side stream, and the static tensor that it returns."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    return graph, result


@pytest.mark.parametrize("release", [keep, bare, guarded], ids=["as-shipped", "released", "guarded"])
def test_replayed_gradients_are_those_of_eager_mode(release: Release) -> None:
    held: list[torch.Tensor] = []
    function = recompute(release, held)
    x = torch.arange(SIZE, dtype=torch.float32, device="cuda").requires_grad_()

    def work() -> torch.Tensor:
        (gradient,) = torch.autograd.grad(function.apply(x).sum(), x)
        return gradient

    graph, gradient = captured(work)
    for scale in (1.0, 3.0):
        with torch.no_grad():
            x.copy_(torch.arange(SIZE, dtype=torch.float32, device="cuda") * scale)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(gradient, 2 * x.detach())


def test_a_gradient_that_nobody_owns_is_given_away_within_the_capture() -> None:
    """The planted case: the harvest is dropped before the capture ends, so its block is used again, and a bare release is why."""

    def addresses(release: Release) -> tuple[int, int]:
        held: list[torch.Tensor] = []
        function = recompute(release, held)
        x = torch.ones(SIZE, device="cuda", requires_grad=True)
        seen = []

        def work() -> torch.Tensor:
            held.clear()
            (gradient,) = torch.autograd.grad(function.apply(x).sum(), x)
            address = gradient.data_ptr()
            del gradient
            later = torch.zeros(SIZE, device="cuda")
            seen.append((address, later.data_ptr()))
            return later

        captured(work)
        return seen[-1]

    first, second = addresses(bare)
    assert first == second, "released: the next tensor of the capture gets the gradient's block"
    first, second = addresses(guarded)
    assert first != second, "guarded: the leaf still owns the block while the graph is captured"

"""Sources with known findings, for tests of what surrounds the rules."""

from __future__ import annotations

SECOND_ORDER = "def step(loss):\n    loss.backward(create_graph=True)\n"
"""One LT008, on line 2."""

HARVEST = """\
import torch


class Recompute(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.run(*leaves)
        torch.autograd.backward(out, grad)
        grads = tuple(
            leaf.grad
            for leaf in leaves
        )
        return grads
"""
"""One LT001, on line 12, in a statement from line 11 to 14."""

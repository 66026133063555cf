"""LT004: tensors kept as plain attributes of an autograd Function's ctx."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.autograd_function import AutogradFunction, autograd_functions, dropped
from lifetime.linter.ctx_stores import Stored, stores
from lifetime.linter.model import Finding, Severity
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.save_fix import save_for_backward
from lifetime.linter.study import study


class TensorOnCtx(Rule):
    """LT004: a tensor is kept as a plain attribute of ctx instead of by `save_for_backward`.

    Why: ctx is the node of the graph. An output kept on it closes the ring ctx -> output -> grad_fn -> ctx, and everything
    behind that node stays until Python's collector comes by, which large trainers switch off. Any other tensor kept on ctx
    is not released by backward, as a saved tensor is: it stays as long as the loss does, and no version counter notices a
    change in place.

    Fix safety: inputs and outputs that are stored once, by name, and only read in backward go to `save_for_backward`. Safe
    for outputs. Unsafe for inputs: a saved input that somebody changes in place between forward and backward, as an
    optimizer does to a weight under an asynchronous pipeline, raises where the attribute silently gave the new value. None
    for intermediates and conditional stores.

    Source: torch 2.13, `torch/csrc/autograd/python_function.cpp` (saved variables are released, `__dict__` is not), the
    notes "Extending PyTorch".
    """

    code = "LT004"
    name = "tensor-on-ctx"
    needles = ((rb"\bFunction\s*\)", rb"\bautograd\b", rb"\bdef (?:forward|setup_context)\b"),)
    bad = (
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.exp(x)
        ctx.out = out
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.out
""",
            (8,),
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.exp(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return grad * out
""",
        ),
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        ctx.save_for_backward(x)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad @ ctx.weight.t(), x.t() @ grad
""",
            (7,),
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad
""",
        ),
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        keep = x > 0
        ctx.keep = keep
        return x * keep

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.keep
""",
            (8,),
        ),
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *inputs: torch.Tensor):
        ctx.inputs = inputs
        return sum(inputs)

    @staticmethod
    def backward(ctx, grad):
        return tuple(grad.expand_as(x) for x in ctx.inputs)
""",
            (7,),
        ),
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.x = x
        ctx.y = output

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.n * ctx.y / ctx.x, None
""",
            (12, 13),
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        return grad * ctx.n * output / x, None
""",
        ),
        Bad(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        kept = []
        context.kept = kept
        for _ in range(3):
            x = torch.tanh(x)
            kept.append(x)
        return x * 2

    @staticmethod
    def backward(context, grad):
        for y in reversed(context.kept):
            grad = grad * (1 - y * y)
        return 2 * grad
""",
            (8,),
        ),
    )
    good = (
        Good(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.shape, ctx.dtype, ctx.dim = x.shape, x.dtype, dim
        ctx.top = x.max().item()
        ctx.rng = torch.get_rng_state()
        return x.sum(dim)

    @staticmethod
    def backward(ctx, grad):
        return grad.unsqueeze(ctx.dim).expand(ctx.shape), None
""",
            "shapes, dtypes, numbers and a random generator's state: no graph, no gradient",
        ),
        Good(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x**3

    @staticmethod
    def backward(ctx, grad):
        x, ctx.x = ctx.x, None
        return grad * 3 * x * x
""",
            "backward gives the input up itself, on its only way through",
        ),
        Good(
            """\
import torch


class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *args):
        ctx.args = args
        return run(*args)

    @staticmethod
    def backward(ctx, grad):
        return None, *ctx.args
""",
            "nothing says that the arguments are tensors",
        ),
        Good(
            """\
class Request:
    def forward(self, ctx, x):
        out = x.exp()
        ctx.out = out
        return out
""",
            "another class's ctx is no node of a graph",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        facts = study(module)
        for function in autograd_functions(module, facts.imports):
            found = [s for s in stores(module, facts, function) if s.is_output or s.attribute not in dropped(function)]
            fix, place = save_for_backward(module, function, found) if found and function.backward else (None, None)
            for stored in found:
                severity = Severity.WARNING if stored.is_output else Severity.NOTE
                own = fix if stored.target is place else None
                yield self.finding(module, stored.target, self.message(function, stored), fix=own, severity=severity)

    @staticmethod
    def message(function: AutogradFunction, stored: Stored) -> str:
        where = f"{function.ctx}.{stored.attribute}"
        if stored.is_output:
            return f"`{where}` holds an output of {function.node.name}: the node, its output and the output's grad_fn form a cycle"
        return f"`{where}` holds a tensor that backward does not release: use save_for_backward"

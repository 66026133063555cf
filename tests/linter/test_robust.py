"""No source makes a rule crash, and a file twice as long takes about twice the work.

`LIFETIME_SOURCES` may name a folder of more sources than this interpreter's own packages.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifetime.errors import SourceError
from lifetime.linter.engine import check_source
from lifetime.linter.loader import decode

ROOTS = [Path(sysconfig.get_paths()["purelib"]), *(Path(p) for p in [os.environ.get("LIFETIME_SOURCES")] if p)]
ONE = """
def train_{k}(model, loader):
    total = 0.0
    for x, y in loader:
        h = model(x)
        h.register_hook(lambda grad: grad * h)
        loss = (h - y).square().mean()
        loss.backward(retain_graph=True)
        (model(x) - y).sum().backward(create_graph=True)
        total += loss
    return total


class Exp_{k}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        leaf = ctx.y.detach().requires_grad_()
        leaf.sum().backward(grad)
        return leaf.grad
"""


def sources() -> Iterator[Path]:
    for root in ROOTS:
        yield from sorted(root.rglob("*.py"))


@pytest.mark.slow
def test_no_source_makes_a_rule_crash() -> None:
    """`check_source` raises RuleError for a rule that crashes; a file that is no Python is somebody else's affair."""
    checked = 0
    for path in sources():
        try:
            check_source(decode(path.read_bytes(), str(path)).source, str(path), select=["ALL"])
        except SourceError:
            continue
        checked += 1
    assert checked > 100


def work(source: str) -> int:
    """Python function calls that all rules together make: the same on every machine."""
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        check_source(source, "long.py", select=["ALL"])
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
def test_work_grows_with_the_file_and_not_with_its_square() -> None:
    long, longer = ("import torch\n" + "".join(ONE.format(k=k) for k in range(n)) for n in (100, 400))
    assert work(longer) < 4.6 * work(long)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["    if x{k}:\n", "    for x{k} in y:\n", "    with x{k}:\n", "    while x{k}:\n"])
def test_deep_nesting_is_walked_in_bounded_time(shape: str) -> None:
    deep = "".join("    " * k + shape.format(k=k) for k in range(60))
    end = "    " * 61 + "loss = m(x0)\n" + "    " * 61 + "loss.backward(retain_graph=True)\n" + "    " * 61 + "total += loss\n"
    source = f"import torch\ndef f(m, y, total, {', '.join(f'x{k}' for k in range(60))}):\n{deep}{end}"
    assert work(source) < 3_000_000

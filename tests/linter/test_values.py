"""What is known of a function's values: graphs that end at a detach, loops that carry, branches that join."""

from __future__ import annotations

import ast
import textwrap

import pytest

from lifetime.linter.execute import Execution
from lifetime.linter.module import Module
from lifetime.linter.state import Did
from lifetime.linter.study import study
from lifetime.linter.values import Answer, Kind, Value


def walk(source: str) -> Execution:
    text = textwrap.dedent(source)
    module = Module("m.py", text, ast.parse(text))
    run = study(module).walk(module.functions[0])
    assert run is not None
    return run


def result(source: str) -> tuple[Execution, Value]:
    """The walk of a function and the value it returns last."""
    run = walk(source)
    return run, [e.values[0] for e in run.events if e.did is Did.RETURN][-1]


@pytest.mark.parametrize(
    ("returned", "kind", "graph"),
    [
        ("x.shape", Kind.PLAIN, Answer.NO),
        ("x.exp().item()", Kind.PLAIN, Answer.NO),
        ("float(x)", Kind.PLAIN, Answer.NO),
        ("torch.exp(x)", Kind.TENSOR, Answer.UNKNOWN),
        ("torch.exp(leaf)", Kind.TENSOR, Answer.YES),
        ("(leaf * 2).detach()", Kind.TENSOR, Answer.NO),
        ("leaf.data", Kind.TENSOR, Answer.NO),
        ("torch.zeros(3) + 1", Kind.TENSOR, Answer.NO),
        ("leaf.argmax()", Kind.TENSOR, Answer.NO),
        ("leaf > 0", Kind.TENSOR, Answer.NO),
        ("x is None", Kind.PLAIN, Answer.NO),
        ("model(x)", Kind.OPAQUE, Answer.YES),
        ("other(x)", Kind.OPAQUE, Answer.UNKNOWN),
        ("F.mse_loss(model(x), x)", Kind.TENSOR, Answer.YES),
        ("None if x is None else leaf.exp()", Kind.TENSOR, Answer.YES),
    ],
)
def test_value_of_an_expression(returned: str, kind: Kind, graph: Answer) -> None:
    source = f"""
        import torch
        import torch.nn.functional as F
        def f(x, model: torch.nn.Module, other):
            leaf = torch.zeros(3).requires_grad_()
            return {returned}
    """
    _, value = result(source)
    assert (value.kind, value.graph) == (kind, graph)


@pytest.mark.parametrize("how", ["with torch.no_grad():", "with torch.inference_mode():", "with torch.set_grad_enabled(False):"])
def test_nothing_is_recorded_without_grad(how: str) -> None:
    _, value = result(f"import torch\ndef f(p):\n    q = p.requires_grad_()\n    {how}\n        y = q * 2\n    return y\n")
    assert value.graph is Answer.NO


def test_a_decorator_switches_recording_off() -> None:
    _, value = result("import torch\n@torch.no_grad()\ndef f(m: torch.nn.Module, x):\n    return m(x)\n")
    assert value.graph is Answer.NO


def test_detach_cuts_and_operations_lead_back() -> None:
    run, value = result("import torch\ndef f(x):\n    h = torch.exp(x)\n    y = h * 2\n    z = y.detach() + 1\n    return y, z\n")
    y, z = run.ancestry.contents(value)
    x = run.exits[0]["x"]
    assert x.own in run.ancestry.behind(y, sure=True)
    assert x.own not in run.ancestry.behind(z)


def test_an_unknown_call_may_lead_back_but_not_surely() -> None:
    run, value = result("def f(x, g):\n    return g(x)\n")
    x = run.exits[0]["x"]
    assert x.own in run.ancestry.behind(value) and x.own not in run.ancestry.behind(value, sure=True)


def test_a_loop_is_walked_twice_so_that_what_it_carries_shows() -> None:
    run = walk("import torch\ndef f(xs, h):\n    for x in xs:\n        h = torch.tanh(x + h)\n        h.sum().backward()\n")
    first, second = (e.values[0] for e in run.events if e.did is Did.BACKWARD)
    assert set(run.ancestry.behind(first)) & set(run.ancestry.behind(second))


def test_a_loop_that_starts_anew_carries_nothing() -> None:
    run = walk("import torch\ndef f(xs, m):\n    for x in xs:\n        h = m(torch.zeros(3))\n        h.sum().backward()\n")
    first, second = (e.values[0] for e in run.events if e.did is Did.BACKWARD)
    assert not set(run.ancestry.behind(first)) & set(run.ancestry.behind(second))


def test_tuples_and_zips_unpack_by_position() -> None:
    run, value = result(
        "import torch\ndef f(x):\n    a, b = x.exp(), x.shape\n    for c, d in zip([a], [b]):\n        pass\n    return c, d\n"
    )
    c, d = run.ancestry.contents(value)
    assert (c.kind, d.kind) == (Kind.OPAQUE, Kind.PLAIN)


def test_branches_that_do_not_come_back_do_not_count() -> None:
    _, value = result(
        "import torch\ndef f(x, flag):\n    y = torch.exp(x)\n    if flag:\n        y = 3\n        raise OSError\n    return y\n"
    )
    assert value.kind is Kind.TENSOR


def test_an_annotated_tuple_of_inputs_holds_tensors() -> None:
    run = walk("import torch\ndef f(*xs: torch.Tensor):\n    return 1\n")
    assert run.ancestry.holds(run.exits[0]["xs"]) is Answer.YES


def test_a_long_chain_of_elifs_does_not_nest() -> None:
    body = "    if x == 0:\n        y = 0\n" + "".join(f"    elif x == {n}:\n        y = {n}\n" for n in range(1, 900))
    assert walk(f"def f(x):\n{body}    return y\n").exits


def test_a_deep_expression_is_opaque() -> None:
    assert result(f"def f(x):\n    return {'-' * 300}x\n")[1].kind in {Kind.OPAQUE, Kind.PLAIN}


def test_an_except_group_is_walked() -> None:
    pytest.importorskip("asyncio.taskgroups", reason="except* came with 3.11")
    _, value = result("def f(x):\n    try:\n        y = x.exp().detach()\n    except* OSError:\n        y = None\n    return y\n")
    assert value.kind is Kind.TENSOR

"""What is read off the indentation lets through every source that LT009 speaks about, and few others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lifetime.linter import registry
from lifetime.linter.layout import may_accumulate

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "lint" / "graph" / "graph_accumulated.py"
RULE = next(rule for rule in registry.load() if rule.code == "LT009")
TRAIN = """\
def train(model, loader):
    total = 0
    for x, y in loader:
        loss = model(x, y)
        loss.backward()
        total += loss
"""


def defective() -> list[str]:
    """Each function or class of the fixture that has a finding and needs no other one for it."""
    source = FIXTURE.read_text()
    segments = [ast.get_source_segment(source, node) or "" for node in ast.parse(source).body]
    return [segment for segment in segments if "expect:" in segment and "one_step" not in segment]


@pytest.mark.parametrize("source", [*(bad.source for bad in RULE.bad), *defective()])
def test_what_has_a_finding_passes(source: str) -> None:
    assert may_accumulate(source.encode())
    assert may_accumulate(source.replace("\n", "\r\n").encode())


def test_there_are_such_sources() -> None:
    assert len(defective()) > 20


PASSES = {
    "a call of a function that runs a backward": TRAIN.replace("loss.backward()", "step(loss)")
    + "def step(l):\n    l.backward()\n",
    "text at the margin within the loop": TRAIN.replace(
        "        loss.backward", '        s = """\ntext\n"""\n        loss.backward'
    ),
    "a bracket at the margin": TRAIN.replace("model(x, y)", "model(\n            x, y\n)"),
    "a comment at the margin": TRAIN.replace("        loss.backward", "# here\n        loss.backward"),
    "a loop at the top": "for x in y:\n    total += f(x)\nprint(total.item())\nwith torch.no_grad():\n    pass\n",
    "a total that is read": TRAIN.replace("        loss.backward()\n", "") + "    return total.item()\n",
}
STOPS = {
    "nothing grows": TRAIN.replace("total += loss", "print(loss)"),
    "only numbers": TRAIN.replace("+= loss", "+= 1"),
    "the backward comes after the loop": TRAIN.replace("        loss.backward()\n", "") + "    loss.backward()\n",
    "a loop in a word": "waiting = before\nloss.backward()\ntotal += loss\n",
    "recording is off around it": "@torch.no_grad()\n" + TRAIN.replace("loss.backward()", "print(loss.item())"),
}


@pytest.mark.parametrize("name", PASSES)
def test_passes(name: str) -> None:
    assert may_accumulate(PASSES[name].encode())


@pytest.mark.parametrize("name", STOPS)
def test_stops(name: str) -> None:
    assert not may_accumulate(STOPS[name].encode())

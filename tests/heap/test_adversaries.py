"""Programs that try to look like leaks, and leaks that try not to: what grows, what lingers, what is silent. Six steps are seen.

`growing` names a word of each growing chain, one finding each; everything else that the program keeps must not be growing.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lifetime.heap.model import Verdict
from tests.heap.program import chain_text, traced


class Adversary(NamedTuple):
    growing: tuple[str, ...]
    source: str


ADVERSARIES = {
    "deque of three": Adversary((), "D = collections.deque(maxlen=3)\ndef step(i):\n    D.append(fresh(i))"),
    "list cut to three": Adversary((), "L = []\ndef step(i):\n    L.append(fresh(i))\n    del L[:-3]"),
    "list emptied every fourth step": Adversary((), "L = []\ndef step(i):\n    L.append(fresh(i))\n    if i % 4 == 3: L.clear()"),
    "cache fills for four steps": Adversary((), "C = {}\ndef step(i):\n    if i < 4: C[i] = fresh(i)"),
    "cache keyed by shape": Adversary((), "C = {}\ndef step(i):\n    k = i % 3\n    if k not in C: C[k] = torch.ones(7 + k, 5)"),
    "random eviction": Adversary(
        (),
        """
import random
R, C = random.Random(5), {}
def step(i):
    C[i] = fresh(i)
    if len(C) > 2: del C[R.choice(sorted(C))]
""",
    ),
    "gradients set to none": Adversary(
        (),
        """
def step(i):
    W.grad = None
    (W * fresh(i)).sum().backward()
""",
    ),
    "previous output carried over": Adversary((), "state = {}\ndef step(i):\n    state['h'] = (fresh(i) * 2).exp()"),
    "moving average": Adversary((), "state = {'m': fresh(0)}\ndef step(i):\n    state['m'] = 0.9 * state['m'] + 0.1 * fresh(i)"),
    "double buffer": Adversary((), "B = [None, None]\ndef step(i):\n    B[i % 2] = fresh(i)"),
    "every second step": Adversary(("L",), "L = []\ndef step(i):\n    if i % 2 == 0: L.append(fresh(i))"),
    "shapes that change": Adversary(("L",), "L = []\ndef step(i):\n    L.append(torch.full((31 + i, 3), float(i)))"),
    "leak while a cache shrinks": Adversary(
        ("LEAK",),
        """
CACHE = {k: [torch.ones(64, 64)] for k in range(40)}
LEAK = []
def step(i):
    for k in range(5): CACHE.pop(5 * i + k, None)
    LEAK.append(fresh(i))
""",
    ),
    "linked list": Adversary(
        ("HEAD",),
        """
class Link:
    def __init__(self, t, below): self.t, self.below = t, below
HEAD = None
def step(i):
    global HEAD
    HEAD = Link(fresh(i), HEAD)
""",
    ),
    "linked tuples": Adversary(("CHAIN",), "CHAIN = ()\ndef step(i):\n    global CHAIN\n    CHAIN = (fresh(i), CHAIN)"),
    "running sum of graphs": Adversary(
        ("TOTAL",), "TOTAL = 0.0\ndef step(i):\n    global TOTAL\n    TOTAL = TOTAL + (W * fresh(i)).sum()"
    ),
    "begins late": Adversary(("L",), "L = []\ndef step(i):\n    if i >= 3: L.append(fresh(i))"),
    "two holders of one sort": Adversary(
        ("FIRST", "SECOND"), "FIRST, SECOND = [], []\ndef step(i):\n    FIRST.append(fresh(i))\n    SECOND.append(fresh(i))"
    ),
    "new key each step": Adversary(("SEEN",), "SEEN = {}\ndef step(i):\n    SEEN[f'step {i}'] = {'loss': fresh(i)}"),
    "leak in a bounded deque's neighbour": Adversary(
        ("L",), "D, L = collections.deque(maxlen=2), []\ndef step(i):\n    D.append(fresh(i))\n    L.append(fresh(i))"
    ),
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_what_grows_is_told_and_nothing_else(name: str) -> None:
    adversary = ADVERSARIES[name]
    seen = traced(adversary.source, prove=False)
    growing = [chain_text(one) for one in seen.survivors if one.verdict is not Verdict.LINGERING]
    assert len(growing) == len(adversary.growing), growing
    assert all(any(f".{word}" in chain for chain in growing) for word in adversary.growing), growing

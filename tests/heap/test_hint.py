"""One remedy a holder, for the leaks of small heaps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lifetime.heap.graph import History
from lifetime.heap.judge import judge
from tests.heap.builder import heap


def hints(lines: Iterable[str], garbage: str = "") -> list[str]:
    found = judge(
        heap(*lines, garbage=garbage), label=lambda edges: edges, prove=None, owners=lambda ids: {}, history=History(1, 6)
    )
    return [one.hint for one in found.survivors]


def each(*lines: str) -> list[str]:
    """The lines for steps 1 to 6, `#` standing for the step."""
    return [line.replace("#", str(step)) for step in range(1, 7) for line in lines]


MODULE = ("module m", "m global:.L-> L", "object L : list")
GRAPH = ("t# .grad_fn-> n#", "autograd n# : MulBackward0", "n# ._saved_self-> x#", "x# * 64 @#")


@pytest.mark.parametrize(
    ("lines", "garbage", "expected"),
    [
        (
            [*MODULE, *each("L [#]-> t#", "t# * 8 @#")],
            False,
            "bound or clear m.L",
        ),
        (
            [*MODULE, *each("L [#]-> t#", "t# * 4 @#")],
            False,
            "bound or clear m.L, or keep .item() in place of the tensor",
        ),
        (
            ["module m", "m global:.B-> B", "object B : deque max 1000", *each("B [#]-> t#", "t# * 8 @#")],
            False,
            "m.B holds 6 and has room for 1,000, about 7.8 KiB when full: bound or clear m.B",
        ),
        (
            [*MODULE, *each("L [#]-> t#", "t# * 8 @#", *GRAPH)],
            False,
            "keep .detach() or .item() of it: a kept tensor with a grad_fn keeps the whole graph of its step",
        ),
        ([*MODULE, "L .last-> t", "t * 8 @6"], False, "set m.L.last to None at the end of the step"),
        (
            ["frame main", "main local:.x-> x", "x * 8 @6", "main local:.y-> y", "y * 4 @6"],
            False,
            "`del x, y` at the end of the step",
        ),
        (
            [*MODULE, *each("L key:<key>-> t#", "t# * 8 @#")],
            False,
            "key by id or name, or use torch.utils.weak.WeakTensorKeyDictionary",
        ),
        (
            each("y# .grad_fn-> c#", "autograd c# : m.KeepOutBackward", "c# .out-> y#", "y# * 8 @#"),
            True,
            "ctx.save_for_backward(...) in place of ctx.out = ...: what it saves is freed after backward and makes no cycle",
        ),
        (
            each(
                "p# .grad-> g#",
                "p# * 8 @#",
                "g# * 8 @#",
                "g# .grad_fn-> n#",
                "autograd n# : PowBackward0",
                "n# ._saved_self-> p#",
            ),
            False,
            "use torch.autograd.grad in place of backward(create_graph=True), or set .grad = None",
        ),
        (
            each("object f# : frame", "f# local:.here-> f#", "f# local:.t-> t#", "t# * 8 @#"),
            True,
            "`del here` before the function returns; or gc.collect() each N steps",
        ),
        (
            each("object a# : m.Head", "a# .parent-> b#", "object b# : m.Model", "b# .head-> a#", "b# .t-> t#", "t# * 8 @#"),
            True,
            "make b1.head a weakref, or set it to None when done; or gc.collect() each N steps",
        ),
        (each("t# * 8 @#"), False, "leave the context or drop the handle that owns it: no Python reference holds it"),
    ],
)
def test_hint(lines: list[str], garbage: bool, expected: str) -> None:
    tensors = " ".join(line.split(" * ")[0] for line in lines if " * " in line)
    assert hints(lines, tensors if garbage else "") == [expected]

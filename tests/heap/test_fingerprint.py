"""Shapes of chains: indices blurred, runs collapsed, one leak for any number of layers and any length of a list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lifetime.heap.fingerprint import EMPTY, LENGTH, Shapes, fingerprint
from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind, ObjectId
from lifetime.heap.references import Token, collapsed, reference, token

TOKENS = st.lists(st.sampled_from([("a", "item", "[*]"), ("b", "attribute", ".x"), ("c", "cell", ".c")]), max_size=24)


@given(TOKENS)
def test_interned_shapes_are_the_collapsed_tokens(tokens: list[Token]) -> None:
    shapes = Shapes()
    shape = EMPTY
    for one in tokens:
        shape = shapes.longer(shape, one)
    assert shapes.tokens(shape) == collapsed(tokens)


@given(TOKENS, st.integers(1, 30))
def test_a_list_is_one_leak_however_long(start: list[Token], length: int) -> None:
    node = [("train.Node", "attribute", ".__dict__"), ("dict", "item", "['next']")]
    assert collapsed([*start, *node, *node]) == collapsed([*start, *node, *(length * node)])


def test_a_fingerprint_is_short_and_tells_leaks_apart() -> None:
    one = fingerprint([("train", "global", ".LOSSES"), ("list", "item", "[*]")])
    assert len(one) == LENGTH and one == "a2b82be1e6a2"
    assert one != fingerprint([("train", "global", ".LOSSES")])


def test_tokens_keep_names_and_lose_numbers() -> None:
    def one(kind: NodeKind, label: str, edge: EdgeKind, name: str) -> Token:
        return token(Node(ObjectId(1), kind, "builtins.thing", label), Edge(ObjectId(1), ObjectId(2), edge, name))

    assert one(NodeKind.FUNCTION, "hook_3", EdgeKind.CLOSURE, "__closure__[2]") == ("hook_*", "closure", ".__closure__[*]")
    assert one(NodeKind.OBJECT, "thing of 3", EdgeKind.ITEM, "['step_12']") == ("builtins.thing", "item", "['step_*']")
    assert one(NodeKind.OBJECT, "", EdgeKind.ITEM, "(100, 3)") == ("builtins.thing", "item", "[*]")
    assert one(NodeKind.AUTOGRAD, "", EdgeKind.SAVED, "_saved_self") == ("builtins.thing", "saved", "._saved_self")


def test_references_read_as_python() -> None:
    def text(kind: EdgeKind, name: str) -> str:
        return reference(Edge(ObjectId(1), ObjectId(2), kind, name))

    assert text(EdgeKind.GRAD_FN, "grad_fn") == ".grad_fn"
    assert text(EdgeKind.SAVED, "saved_tensors[0]") == ".saved_tensors[0]"
    assert text(EdgeKind.NEXT, "next_functions[0][0]") == ".next_functions[0][0]"
    assert text(EdgeKind.ITEM, "3") == "[3]" and text(EdgeKind.ITEM, "['k']") == "['k']"
    assert text(EdgeKind.INTERNAL, "hamt internal") == "<hamt internal>" and text(EdgeKind.INTERNAL, "") == "<internal>"

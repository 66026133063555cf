"""Who is alive on purpose, and why; how statuses spread along a chain; the catalogue; the remedies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind, ObjectId
from lifetime.heap.known import CATALOGUE, KnownHolder, known
from lifetime.heap.links import consistent, links
from lifetime.heap.model import Known, Leaking, Link, RootKind
from lifetime.heap.status import inspect

NO, UNKNOWN, YES = Leaking.NO, Leaking.UNKNOWN, Leaking.YES


def node(kind: NodeKind = NodeKind.OBJECT, type_name: str = "m.Thing", label: str = "", base: str = "") -> Node:
    return Node(ObjectId(1), kind, type_name, label, base=base)


@pytest.mark.parametrize(
    ("what", "root", "expected"),
    [
        (node(NodeKind.MODULE), None, (NO, "a module lives as long as the program")),
        (node(NodeKind.CLASS), None, (NO, "a class lives as long as its module")),
        (node(NodeKind.FRAME), RootKind.LOCAL, (NO, "the function is running")),
        (node(NodeKind.FRAME), RootKind.THREAD, (NO, "the function is running")),
        (node(NodeKind.FRAME), None, (UNKNOWN, "")),
        (node(type_name="torch.optim.adamw.AdamW"), None, (NO, "an optimizer lives as long as the training")),
        (node(base="torch.optim.Optimizer"), None, (NO, "an optimizer lives as long as the training")),
        (node(base="torch.nn.Module"), None, (NO, "a model lives as long as the training")),
        (node(NodeKind.TENSOR, base="torch.nn.Parameter"), None, (NO, "a parameter lives as long as its model")),
        (node(NodeKind.TENSOR), None, (UNKNOWN, "")),
        (node(type_name="builtins.list"), None, (UNKNOWN, "")),
    ],
)
def test_inspectors(what: Node, root: RootKind | None, expected: tuple[Leaking, str]) -> None:
    assert inspect(what, root) == expected


def test_a_module_made_in_a_watched_step_is_no_excuse() -> None:
    assert inspect(node(base="torch.nn.Module"), None, fresh=True) == (UNKNOWN, "")
    assert inspect(node(NodeKind.MODULE), None, fresh=True)[0] is NO


def chain(*told: tuple[str, str, Leaking]) -> list[Link]:
    return [Link(name, "m.Thing", ".x", kind, None, status) for name, kind, status in told]


def statuses(told: tuple[Link, ...]) -> list[tuple[Leaking, str]]:
    return [(link.leaking, link.reason) for link in told]


def test_what_leads_to_an_object_that_is_alive_on_purpose_is_not_leaking() -> None:
    told = chain(("a", "item", UNKNOWN), ("net", "attribute", NO), ("b", "item", UNKNOWN))
    assert statuses(consistent(told, 2)) == [(NO, "net below it is not leaking"), (NO, ""), (UNKNOWN, "")]


def test_tensors_and_graphs_below_the_blamed_reference_should_have_died() -> None:
    told = chain(("m", "global", NO), ("L", "item", UNKNOWN), ("t", "grad_fn", UNKNOWN), ("n", "saved", UNKNOWN))
    dead = (YES, "it should have died with its step")
    assert statuses(consistent(told, 1)) == [(NO, ""), (UNKNOWN, ""), dead, dead]


def test_the_step_from_a_tensor_to_its_storage_is_no_link() -> None:
    edges = [Edge(ObjectId(1), ObjectId(2), EdgeKind.ITEM, "[0]"), Edge(ObjectId(2), ObjectId(3), EdgeKind.STORAGE)]
    told, place = links([node(label="L"), node(NodeKind.TENSOR)], edges, [(UNKNOWN, "")] * 2)
    assert [(link.holder, link.reference) for link in told] == [("L", "[0]")] and place == [0, 1]


def test_the_dictionary_of_an_object_is_no_link() -> None:
    edges = [
        Edge(ObjectId(1), ObjectId(2), EdgeKind.ATTRIBUTE, "__dict__"),
        Edge(ObjectId(2), ObjectId(3), EdgeKind.ITEM, "['cache']"),
    ]
    told, place = links([node(label="model"), node(label="dict")], edges, [(NO, "why"), (UNKNOWN, "")])
    assert told == [Link("model", "m.Thing", ".cache", "attribute", None, NO, "why")] and place == [0, 0]
    told, place = links([node(label="model"), node(label="dict")], [edges[0], replace(edges[1], name="[3]")], [(UNKNOWN, "")] * 2)
    assert [(link.holder, link.reference) for link in told] == [("model", ".__dict__"), ("dict", "[3]")] and place == [0, 1]


def test_a_known_holder_is_named_with_its_report() -> None:
    frame = Node(ObjectId(1), NodeKind.FRAME, "frame", "wrap")
    itself = Edge(ObjectId(1), ObjectId(1), EdgeKind.LOCAL, "currentframe")
    assert known([frame], [itself], CATALOGUE) == Known(
        "wrap.currentframe",
        "torch.fx.wrap keeps its own frame in a local, and with it the stack that first imported torch._dynamo",
        "https://github.com/pytorch/pytorch/issues/195586",
    )
    assert known([frame], [Edge(ObjectId(1), ObjectId(1), EdgeKind.LOCAL, "other")], CATALOGUE) is None


def test_an_entry_is_asked_with_the_installed_version() -> None:
    entry = KnownHolder("networkx", "wrap", frozenset({".x"}), "", "", applies=lambda installed: installed >= (3,))
    assert entry.applies((3, 6, 1)) and not entry.applies((2, 8))


@pytest.mark.parametrize(
    ("library", "name", "first", "last", "fixed"),
    [
        ("transformer_engine", ".tensor_objects", (2, 0), (2, 14, 1), (2, 15)),
        ("transformer_engine", "._fp8_workspaces", (1, 8), (2, 15), (2, 16)),
        ("accelerate", ".dataloader_references", (0, 20), (1, 3, 0), (1, 4, 0)),
    ],
)
def test_an_entry_is_about_the_releases_that_have_the_defect(
    library: str, name: str, first: tuple[int, ...], last: tuple[int, ...], fixed: tuple[int, ...]
) -> None:
    (entry,) = [one for one in CATALOGUE if one.library == library and name in one.names]
    assert entry.applies(first) and entry.applies(last) and not entry.applies(fixed)


def test_every_entry_has_a_public_report_and_a_sentence() -> None:
    for entry in CATALOGUE:
        assert entry.report.startswith("https://github.com/") and entry.description and entry.names

"""Which of several ways is told: the shortest, no way through another survivor, running frames last, and always the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lifetime.heap.graph import NodeKind, ObjectId, Snapshot, StorageId
from lifetime.heap.paths import Numbered, search
from lifetime.heap.priority import starts, tolls
from tests.heap.builder import heap, outcome


def way(snapshot: Snapshot, name: str) -> str:
    """The best path to a storage, as the labels of the nodes on it."""
    graph = Numbered(snapshot)
    targets = [graph.number[root.target] for root in snapshot.roots]
    storages = [k for k, node in enumerate(graph.nodes) if node.kind is NodeKind.STORAGE]
    tree = search(graph, starts(snapshot.roots, graph, targets), targets, tolls(graph, storages))
    tensor = next(k for k, node in enumerate(graph.nodes) if node.kind is NodeKind.TENSOR and node.where == name)
    if not tree.reached(tensor):
        return "none"
    root, edges = tree.path(tensor)
    below = [graph.nodes[graph.target[edge]] for edge in edges]
    return " ".join([snapshot.roots[root].name, *(node.where or node.label for node in below)])


def named(*lines: str) -> Snapshot:
    """A heap whose tensors remember their names in `where`."""
    snapshot = heap(*lines)
    names = [line.split(" * ")[0] for line in lines if " * " in line]
    tensors = [node for node in snapshot.nodes.values() if node.kind is NodeKind.TENSOR]
    order = sorted(tensors, key=lambda node: min(s for s in snapshot.watched if _owns(snapshot, node.id, s)))
    by_name = dict(zip([node.id for node in order], names, strict=True))
    nodes = {key: replace(node, where=by_name.get(key)) for key, node in snapshot.nodes.items()}
    return replace(snapshot, nodes=nodes)


def _owns(snapshot: Snapshot, node: ObjectId, storage: StorageId) -> bool:
    return any((edge.source, int(edge.target)) == (node, int(storage)) for edge in snapshot.edges)


def test_the_shortest_way() -> None:
    assert way(named("module m", "m .a-> x", "x .b-> y", "y [0]-> t", "m .c-> z", "z [0]-> t", "t * 8 @1"), "t") == "m z t"


def test_a_running_frame_comes_last_however_near() -> None:
    lines = ("frame main", "main local:.t-> t", "module m", "m .a-> x", "x .b-> y", "y [0]-> t", "t * 8 @1")
    assert way(named(*lines), "t") == "m x y t"
    assert way(named("frame main", "main local:.t-> t", "t * 8 @1"), "t") == "main t"


def test_a_variable_that_is_the_tensor_comes_after_a_container() -> None:
    assert way(named("module m", "m .loss-> t", "m .losses-> L", "L [5]-> t", "t * 8 @1"), "t") == "m L t"


def test_a_way_around_another_survivor() -> None:
    lines = ("module m", "m .a-> x", "x [0]-> s", "s ._parents-> t", "m .b-> y", "y .c-> z", "z .d-> w", "w [0]-> t")
    assert way(named(*lines, "s * 8 @1", "t * 8 @1"), "t") == "m y z w t"
    assert way(named("module m", "m .a-> x", "x [0]-> s", "s ._parents-> t", "s * 8 @1", "t * 8 @1"), "t") == "m x s t"


def test_a_library_that_holds_all_it_was_given_explains_nothing_that_others_hold() -> None:
    accelerator = ("module m", "object acc : accelerate.accelerator.Accelerator", "m .acc-> acc", "acc ._models-> t")
    assert way(named(*accelerator, "m .a-> x", "x .b-> y", "y [0]-> t", "t * 8 @1"), "t") == "m x y t"
    assert way(named(*accelerator, "t * 8 @1"), "t") == "m acc t"


def test_no_root_is_no_way() -> None:
    assert way(named("a .b-> t", "t * 8 @1"), "t") == "none"


LINES = (
    "module m",
    "module n",
    "frame main",
    "m global:.A-> a",
    "n global:.B-> b",
    "main local:.c-> c",
    "object a : dict",
    "object b : dict",
    "object c : m.C",
)
KEPT = [line for k in range(1, 7) for line in (f"a ['{k}']-> t{k}", f"b ['{k}']-> t{k}", f"c .x-> t{k}", f"t{k} * {8 * k} @{k}")]


def renumbered(snapshot: Snapshot, order: Sequence[int], shuffled: random.Random) -> Snapshot:
    """The same heap at other addresses, found in another order."""
    new = dict(zip(snapshot.nodes, order, strict=True))
    nodes = {ObjectId(new[key]): replace(node, id=ObjectId(new[key])) for key, node in snapshot.nodes.items()}
    edges = [replace(e, source=ObjectId(new[e.source]), target=ObjectId(new[e.target])) for e in snapshot.edges]
    roots = [replace(root, target=ObjectId(new[root.target])) for root in snapshot.roots]
    moved = {StorageId(new[ObjectId(key)]): one for key, one in snapshot.watched.items()}
    watched = {key: replace(one, storage=key) for key, one in moved.items()}
    keys = list(nodes)
    shuffled.shuffle(keys)
    shuffled.shuffle(edges)
    shuffled.shuffle(roots)
    return Snapshot({key: nodes[key] for key in keys}, tuple(edges), tuple(roots), watched)


@given(st.randoms(use_true_random=False))
def test_the_judgement_depends_on_no_address_and_on_no_order(shuffled: random.Random) -> None:
    snapshot = heap(*LINES, *KEPT)
    order = list(range(1000, 1000 + len(snapshot.nodes)))
    shuffled.shuffle(order)
    assert outcome(renumbered(snapshot, order, shuffled)) == outcome(snapshot)

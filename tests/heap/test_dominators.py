"""Dominators against hand-made answers and against networkx, retained bytes by hand."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from lifetime.heap.dominators import Retained, immediate_dominators
from lifetime.heap.graph import ObjectId
from lifetime.heap.paths import Numbered
from tests.heap.builder import heap

GRAPHS = st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=4), min_size=n, max_size=n))


@given(GRAPHS)
def test_immediate_dominators_are_those_of_networkx(leaving: list[list[int]]) -> None:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(leaving)))
    graph.add_edges_from((u, v) for u, targets in enumerate(leaving) for v in targets)
    expected = {v: above for v, above in nx.immediate_dominators(graph, 0).items() if v != 0}
    assert immediate_dominators(len(leaving), 0, leaving.__getitem__) == expected


@given(GRAPHS)
def test_every_dominator_comes_before_what_it_dominates(leaving: list[list[int]]) -> None:
    order = [0, *immediate_dominators(len(leaving), 0, leaving.__getitem__)]
    for node, above in immediate_dominators(len(leaving), 0, leaving.__getitem__).items():
        assert order.index(above) < order.index(node)


def test_the_paper_example_by_hand() -> None:
    """Lengauer and Tarjan's own graph: R A B C D E F G H I J K L as 0..12."""
    leaving = [[1, 2, 3], [4], [1, 4, 5], [6, 7], [12], [8], [9], [9, 10], [5, 11], [11], [9], [9, 0], [8]]
    expected = {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 3, 7: 3, 8: 0, 9: 0, 10: 7, 11: 0, 12: 4}
    assert immediate_dominators(13, 0, leaving.__getitem__) == expected


def test_a_list_of_a_hundred_thousand_is_no_recursion() -> None:
    size = 100_000
    found = immediate_dominators(size, 0, lambda node: [node + 1] if node + 1 < size else [])
    assert all(found[node] == node - 1 for node in range(1, size))


def retained(*lines: str) -> tuple[Retained, dict[str, int]]:
    snapshot = heap(*lines)
    graph = Numbered(snapshot)
    sizes = {graph.number[ObjectId(key)]: one.nbytes for key, one in snapshot.watched.items()}
    names = {node.label or f"storage{number}": number for number, node in enumerate(graph.nodes)}
    return Retained(graph, [graph.number[root.target] for root in snapshot.roots], sizes), names


def test_retained_bytes_count_a_storage_once() -> None:
    found, at = retained(
        "module m",
        "m .a-> x",
        "m .b-> y",
        "x [0]-> t",
        "x [1]-> u",
        "y [0]-> u",
        "y [1]-> v",
        "t * 100 @1",
        "u * 10 @1",
        "v * 1 @1",
    )
    assert [found.below(at[name]) for name in ("m", "x", "y")] == [111, 100, 1]
    assert found.is_bridge(at["m"], at["x"]) and found.is_bridge(None, at["m"])


def test_two_references_to_one_object_are_no_bridge() -> None:
    found, at = retained("module m", "m .a-> x", "m .b-> y", "x [0]-> z", "y [0]-> z", "z [0]-> t", "t * 8 @1")
    assert found.below(at["z"]) == 8
    assert not found.is_bridge(at["x"], at["z"]) and not found.is_bridge(at["m"], at["z"])


def test_a_reference_back_from_below_leaves_a_bridge_a_bridge() -> None:
    found, at = retained("module m", "m .a-> x", "x .child-> y", "y .parent-> x", "y .t-> t", "t * 8 @1")
    assert found.is_bridge(at["m"], at["x"]) and found.is_below(at["y"], at["x"])

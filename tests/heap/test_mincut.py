"""The smallest cut against networkx, and that it is the nearest one."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from lifetime.heap.graph import Edge, Node, NodeKind, ObjectId, Snapshot
from lifetime.heap.mincut import minimum_cut
from lifetime.heap.paths import Numbered

NODES = 9
PAIRS = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.booleans()).filter(lambda p: p[0] != p[1]),
    unique_by=lambda p: p[:2],
    max_size=24,
)


def numbered(pairs: list[tuple[int, int]]) -> Numbered:
    nodes = {ObjectId(k): Node(ObjectId(k), NodeKind.OBJECT, "object") for k in range(NODES)}
    return Numbered(Snapshot(nodes, tuple(Edge(ObjectId(a), ObjectId(b)) for a, b in pairs), (), {}))


@given(PAIRS)
def test_the_cut_is_as_small_as_that_of_networkx_and_it_cuts(pairs: list[tuple[int, int, bool]]) -> None:
    graph = numbered([(a, b) for a, b, _ in pairs])
    hard = {k for k, pair in enumerate(pairs) if pair[2]}
    oracle: nx.DiGraph[int] = nx.DiGraph()
    oracle.add_nodes_from(range(NODES))
    for k, (a, b, _) in enumerate(pairs):
        oracle.add_edge(a, b, **({} if k in hard else {"capacity": 1}))
    found = minimum_cut(graph, [NODES - 1], {0}, lambda edge: edge not in hard)
    try:
        size = nx.minimum_cut_value(oracle, 0, NODES - 1)
    except nx.NetworkXUnbounded:
        assert found is None
        return
    assert found is not None and len(found) == size and not hard & set(found)
    oracle.remove_edges_from(pairs[edge][:2] for edge in found)
    assert not nx.has_path(oracle, 0, NODES - 1)


def test_of_several_smallest_cuts_the_nearest_to_the_storage() -> None:
    assert minimum_cut(numbered([(0, 1), (1, 2), (2, 3)]), [3], {0}, lambda edge: True) == [2]
    assert minimum_cut(numbered([(0, 1), (1, 2), (2, 3)]), [3], {0}, lambda edge: edge != 2) == [1]


def test_too_many_holders_are_no_advice() -> None:
    wide = numbered([(0, k) for k in range(1, 8)] + [(k, 8) for k in range(1, 8)])
    assert minimum_cut(wide, [8], {0}, lambda edge: True, most=6) is None
    assert minimum_cut(wide, [8], {0}, lambda edge: True, most=7) == list(range(7, 14))

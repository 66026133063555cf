"""A heap in a few lines of text: `heap("module m", "m .cache-> l", "l [0]-> t", "t * 64 @3")`.

`KIND NAME [: TYPE]` declares a node, `A REFERENCE-> B` is an edge (its kind is read off the reference, or said:
`A kind:REFERENCE-> B`), `T * BYTES @STEP` a tensor and its storage, born in that step. Modules, running frames and
classes are roots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import networkx as nx

from lifetime.heap.graph import (
    CutOutcome,
    Death,
    Edge,
    EdgeKind,
    History,
    Node,
    NodeKind,
    ObjectId,
    RootRef,
    Snapshot,
    StorageId,
    Watched,
)
from lifetime.heap.judge import judge
from lifetime.heap.model import RootKind, Survivor, TensorFacts

_EDGE = re.compile(r"(\w+) (?:(\w+):)?(\S*)-> (\w+)\Z")
_TENSOR = re.compile(r"(\w+) \* (\d+) @(\d+)\Z")
_NODE = re.compile(r"(\w+) (\w+)(?: : (\S+))?(?: max (\d+))?\Z")
_ROOTS = {"module": RootKind.GLOBAL, "frame": RootKind.LOCAL, "class": RootKind.CLASS, "thread": RootKind.THREAD}
_KINDS = {"thread": NodeKind.FRAME, "suspended": NodeKind.FRAME, "parameter": NodeKind.TENSOR}
_BY_NAME = {".grad_fn": EdgeKind.GRAD_FN, ".grad": EdgeKind.GRAD, ".cell_contents": EdgeKind.CELL, ".variable": EdgeKind.VARIABLE}
_BASES = {"parameter": "torch.nn.Parameter", "model": "torch.nn.Module", "optimizer": "torch.optim.Optimizer"}


def heap(*lines: str, garbage: str = "") -> Snapshot:
    ids: dict[str, int] = {}
    nodes: dict[ObjectId, Node] = {}
    edges: list[Edge] = []
    roots: list[RootRef] = []
    watched: dict[StorageId, Watched] = {}

    def number(name: str) -> ObjectId:
        key = ObjectId(ids.setdefault(name, len(ids) + 1))
        nodes.setdefault(key, Node(key, NodeKind.OBJECT, "list", name))
        return key

    for line in lines:
        if edge := _EDGE.match(line):
            source, kind, name, target = edge.groups()
            edges.append(Edge(number(source), number(target), _edge_kind(kind, name), name))
        elif tensor := _TENSOR.match(line):
            name, size, step = tensor.group(1), int(tensor.group(2)), int(tensor.group(3))
            key, storage = number(name), number(f"{name}_storage")
            facts = TensorFacts("Tensor", (size // 4,), "float32", "cpu", size)
            kind_, type_, base = (nodes[key].kind, nodes[key].type_name, nodes[key].base)
            known = kind_ is NodeKind.TENSOR
            nodes[key] = Node(key, NodeKind.TENSOR, type_ if known else "torch.Tensor", "Tensor", tensor=facts, base=base)
            nodes[storage] = Node(storage, NodeKind.STORAGE, "storage", storage=StorageId(storage))
            edges.append(Edge(key, storage, EdgeKind.STORAGE))
            watched[StorageId(storage)] = Watched(StorageId(storage), step, size)
        else:
            match = _NODE.match(line)
            assert match, line
            sort, name, type_name, most = match.groups()
            key = number(name)
            kind = _KINDS.get(sort) or (NodeKind(sort) if sort in set(NodeKind) else NodeKind.OBJECT)
            bound = int(most) if most else None
            nodes[key] = Node(key, kind, type_name or sort, name, bound=bound, base=_BASES.get(sort, ""))
            if sort in _ROOTS:
                roots.append(RootRef(key, _ROOTS[sort], name, expression=None if sort == "frame" else name))
    dead = frozenset(StorageId(ids[f"{name}_storage"]) for name in garbage.split())
    return Snapshot(nodes, tuple(edges), tuple(roots), watched, dead)


def _edge_kind(kind: str | None, name: str) -> EdgeKind:
    if kind:
        return EdgeKind(kind)
    if name.startswith("["):
        return EdgeKind.ITEM
    if name.startswith("._saved"):
        return EdgeKind.SAVED
    if name.startswith(".next_functions"):
        return EdgeKind.NEXT
    return _BY_NAME.get(name, EdgeKind.ATTRIBUTE)


def cutter(snapshot: Snapshot) -> Callable[[Sequence[Edge], Sequence[Edge], frozenset[StorageId]], CutOutcome]:
    """A proof by the graph: once the edges are gone what neither a root nor a cycle reaches is dead, as by reference counts."""

    def prove(path: Sequence[Edge], cuts: Sequence[Edge], expected: frozenset[StorageId]) -> CutOutcome:
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(snapshot.nodes)
        gone = {(edge.source, edge.target) for edge in cuts}
        graph.add_edges_from((e.source, e.target) for e in snapshot.edges if (e.source, e.target) not in gone)
        alive = {root.target for root in snapshot.roots}
        for part in nx.strongly_connected_components(graph):
            if len(part) > 1 or graph.has_edge(*(2 * tuple(part))):
                alive |= part
        for node in list(alive):
            alive |= nx.descendants(graph, node)
        died = frozenset(s for s in snapshot.watched if ObjectId(s) not in alive)
        return CutOutcome(died, sum(snapshot.watched[s].nbytes for s in died))

    return prove


def outcome(snapshot: Snapshot, first: int = 1, last: int = 6, deaths: tuple[Death, ...] = (), prove: bool = True) -> list[str]:
    """The whole judgement, one line a survivor."""
    judgement = judge(
        snapshot,
        label=lambda edges: edges,
        prove=cutter(snapshot) if prove else None,
        owners=lambda storages: {},
        history=History(first, last, deaths),
    )
    return [_told(one) for one in judgement.survivors]


def _told(one: Survivor) -> str:
    chain = one.chain
    links = " ".join(f"{link.holder}{link.reference}" for link in chain.links)
    closes = "" if chain.cycle is None else f" closing on {chain.cycle}"
    size = f"{one.count} of {one.bytes} B, {one.count_per_step:g} and {one.bytes_per_step} B a step"
    cut = f"cut {one.cut.link} {one.cut.reference} {one.cut.proof.value} {one.cut.frees_bytes} B"
    why = f" ({one.cut.why})" if one.cut.why else ""
    return f"{one.verdict.value}: {size}; {chain.root.kind.value} {chain.root.name}: {links}{closes}; {cut}{why}"

"""A heap in a few lines of text: `heap("module m", "m .cache-> l", "l [0]-> t", "t * 64 @3")`.

`KIND NAME [: TYPE]` declares a node, `A REFERENCE-> B` is an edge (its kind is read off the reference, or said:
`A kind:REFERENCE-> B`), `T * BYTES @STEP` a tensor and its storage, born in that step. Modules, running frames and
classes are roots.
"""

from __future__ import annotations

import re

from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind, ObjectId, RootRef, Snapshot, StorageId, Watched
from lifetime.heap.model import RootKind, TensorFacts

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

"""The chains that were chosen, as one tree: each reference of it labelled once, each holder judged once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lifetime.heap.fingerprint import EMPTY, Shape, Shapes
from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind, RootRef
from lifetime.heap.model import Leaking
from lifetime.heap.paths import Numbered, Tree
from lifetime.heap.references import Token, is_cuttable, token
from lifetime.heap.status import REGISTERED, Status, inspect, is_optimizer, is_parameter

Label = Callable[[Sequence[Edge]], Sequence[Edge]]
SILENT = frozenset({EdgeKind.NEXT, EdgeKind.VARIABLE, EdgeKind.STORAGE})
"""References that say how long a graph is and not who holds it: no part of a shape."""


class Chosen:
    """The union of the best paths to some storages. A reference is named by the node that it refers to: in a tree there is one.

    `order` lists the nodes from the roots down. For these nodes `judge` fills: status; shape, of the references since the last
    holder that is alive on purpose; loose, the same with no keys in it; anchor, the reference to blame for this chain alone;
    depth below the root; forks, how many chosen references leave the node.
    """

    def __init__(self, graph: Numbered, tree: Tree, roots: Sequence[RootRef], storages: Iterable[int], label: Label) -> None:
        self.graph = graph
        self.roots = roots
        self._last = tree.last
        self.order = _top_down(graph, tree, storages)
        source = graph.source
        self._above = {node: source[last] if (last := self._last_of(node)) >= 0 else None for node in self.order}
        self.edge = self._labelled(label)
        self.shapes = Shapes()
        self.status: dict[int, Status] = {}
        self.shape: dict[int, Shape] = {}
        self.loose: dict[int, Shape] = {}
        self.anchor: dict[int, int] = {}
        self.depth: dict[int, int] = {}
        self.forks: dict[int, int] = {}
        self._root: dict[int, int] = {}
        self._born: dict[int, int] = {}
        self._inside: dict[int, bool] = {}
        self._intended: dict[int, bool] = {}

    def judge(self, born: dict[int, int]) -> None:
        """Fill status, shape and anchor. `born` gives the step of birth of each storage that is a candidate."""
        self._born = born
        fresh = self._fresh(born)
        for node in self.order:
            above = self.above(node)
            self._root[node] = -1 - self._last_of(node) if above is None else self._root[above]
            root = self.root_of(node).kind if above is None else None
            self.status[node] = inspect(self.node(node), root, node in fresh)
            self._place(node, above)

    def node(self, number: int) -> Node:
        return self.graph.nodes[number]

    def above(self, node: int) -> int | None:
        """The holder on the best path; None where a root refers to the node."""
        return self._above[node]

    def _last_of(self, node: int) -> int:
        last = self._last[node]
        assert last is not None, "chosen nodes are reached"
        return last

    def root_of(self, node: int) -> RootRef:
        """The root of the best path to the node."""
        return self.roots[self._root[node]]

    def path(self, node: int) -> list[int]:
        """The nodes from the one that a root refers to down to `node`."""
        found = [node]
        while (above := self.above(found[-1])) is not None:
            found.append(above)
        return found[::-1]

    def _labelled(self, label: Label) -> dict[int, Edge]:
        """The labelled edge into each node that has a holder."""
        below = [node for node in self.order if self.above(node) is not None]
        edges = [self.graph.edges[self._last_of(node)] for node in below]
        return dict(zip(below, label(edges), strict=True))

    def _fresh(self, born: dict[int, int]) -> set[int]:
        """Modules and parameters whose own storages all come from one watched step: made in it, not by the program's set-up."""
        steps: dict[int, set[int]] = {}
        for storage, step in born.items():
            tensor = self.above(storage)
            if tensor is not None and (is_parameter(self.node(tensor)) or self._is_registered(tensor)):
                for node in self._holders(storage):
                    if step in steps.setdefault(node, set()):
                        break
                    steps[node].add(step)
        return {node for node, seen in steps.items() if len(seen) == 1}

    def _holders(self, node: int) -> Iterable[int]:
        above = self.above(node)
        while above is not None:
            yield above
            above = self.above(above)

    def _is_registered(self, tensor: int) -> bool:
        """Whether a module's own dictionary of parameters or buffers is what holds it."""
        table = self.above(tensor)
        return table in self.edge and any(name in self.edge[table].name for name in REGISTERED) if table is not None else False

    def _place(self, node: int, above: int | None) -> None:
        """Shape: of the references since the last holder that is alive on purpose. Anchor: the reference to blame for this chain
        alone, the first `.grad_fn` of a kept tensor, else the last one that can be cut."""
        edge = self.edge.get(node)
        if above is None or edge is None:
            self.shape[node] = self.loose[node] = self._from_root(node)
            self.anchor[node], self._inside[node] = node, False
            self.depth[node], self.forks[node], self._intended[node] = 0, 0, False
            return
        start = EMPTY if self.status[above][0] is Leaking.NO else self.shape[above]
        silent = edge.kind in SILENT
        loose = EMPTY if start == EMPTY else self.loose[above]
        step = token(self.node(above), edge)
        self.shape[node] = start if silent else self.shapes.longer(start, step)
        self.loose[node] = loose if silent else self.shapes.longer(loose, self._without_key(above, step))
        self.depth[node], self.forks[node] = self.depth[above] + 1, 0
        self.forks[above] += 1
        self._intended[node] = self._intended[above] or self._is_replaced(node, above)
        held = self._inside[above]
        self._inside[node] = held or edge.kind is EdgeKind.GRAD_FN
        self.anchor[node] = self.anchor[above] if held or not is_cuttable(edge) else node

    def _without_key(self, holder: int, step: Token) -> Token:
        """The token for any item of a dictionary; of one that is a namespace it keeps the name."""
        is_namespace = holder in self.edge and self.edge[holder].name.endswith("__dict__")
        return step if step[1] != EdgeKind.ITEM.value or is_namespace else (step[0], step[1], "[*]")

    def _from_root(self, node: int) -> Shape:
        root = self.root_of(node)
        return EMPTY if is_place(self.node(node)) else self.shapes.longer(EMPTY, (root.kind.value, "root", root.name))

    def is_intended(self, storage: int) -> bool:
        """Whether what holds it replaces it on purpose: a parameter's gradient, a module's registered tensor, an optimizer's
        state, a container with a limit."""
        return self._intended[storage]

    def _is_old_gradient(self, leaf: int, edge: Edge) -> bool:
        """Whether this is the `.grad` of a leaf older than the watched steps: what set_to_none replaces."""
        if edge.kind is not EdgeKind.GRAD:
            return False
        return not any(self.graph.target[number] in self._born for number in self.graph.leaving(leaf))

    def _is_replaced(self, node: int, above: int) -> bool:
        holder, edge = self.node(above), self.edge[node]
        in_state = is_optimizer(holder) and edge.name.strip(".") == "state"
        return in_state or holder.bound is not None or self._is_old_gradient(above, edge) or self._is_registered(node)


def is_place(node: Node) -> bool:
    """Whether a root is the node itself, so that the first reference is the node's and not the root's."""
    return node.kind in {NodeKind.MODULE, NodeKind.CLASS, NodeKind.FRAME}


def _top_down(graph: Numbered, tree: Tree, storages: Iterable[int]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for node in storages:
        fresh = []
        at: int | None = node
        while at is not None and at not in seen:
            fresh.append(at)
            seen.add(at)
            last = tree.last[at]
            at = graph.source[last] if last is not None and last >= 0 else None
        order.extend(reversed(fresh))
    return order

"""The chosen chains, judged: who on them is alive on purpose, what they look like, and which reference each one blames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lifetime.heap.fingerprint import EMPTY, Shape, Shapes
from lifetime.heap.graph import EdgeKind, Node, NodeKind, RootRef
from lifetime.heap.model import Leaking
from lifetime.heap.paths import Numbered, Tree
from lifetime.heap.purpose import Purpose
from lifetime.heap.references import Token, is_cuttable, is_namespace, token
from lifetime.heap.status import Status
from lifetime.heap.trunk import Label, Trunk

SILENT = frozenset({EdgeKind.NEXT, EdgeKind.VARIABLE, EdgeKind.STORAGE})
"""References that say how long a graph is and not who holds it: no part of a shape."""


class Chosen(Trunk):
    """For each node: status; shape, of the references since the last holder that is alive on purpose; loose, the same with no keys
    in it; anchor, the reference to blame for this chain alone; depth below the root; forks, how many chosen references leave it.

    `born`: the step of birth of each storage that is a candidate.
    """

    def __init__(
        self,
        graph: Numbered,
        tree: Tree,
        roots: Sequence[RootRef],
        storages: Iterable[int],
        label: Label,
        born: Mapping[int, int],
    ) -> None:
        super().__init__(graph, tree, roots, storages, label)
        self.shapes = Shapes()
        self.status: dict[int, Status] = {}
        self.shape: dict[int, Shape] = {}
        self.loose: dict[int, Shape] = {}
        self.anchor: dict[int, int] = {}
        self.depth: dict[int, int] = {}
        self.forks: dict[int, int] = {}
        self._inside: dict[int, bool] = {}
        self._intended: dict[int, bool] = {}
        self._replaced: set[int] = set()
        self._purpose = purpose = Purpose(self, born)
        for node in self.order:
            self.status[node] = purpose.status(node)
            self.forks[node] = 0
            above = self.above(node)
            if above is None:
                self._begin(node)
            else:
                if purpose.replaces(node):
                    self._replaced.add(node)
                self._go_on(node, above)
                self._intended[node] = self._intended[above] or node in self._replaced or purpose.is_registered(node)

    def is_intended(self, storage: int) -> bool:
        """Whether what holds it replaces it on purpose: a parameter's gradient, a module's registered tensor, an optimizer's
        state, a container with a limit."""
        return self._intended[storage]

    def is_limited(self, container: int) -> bool:
        """Whether it can hold so many and no more."""
        return self._purpose.is_limited(container)

    def lives_by_itself(self, node: int) -> bool:
        """Whether whoever refers to the node is no reason that it is alive: it is so on purpose, or replaced on purpose."""
        return self.status[node][0] is Leaking.NO or node in self._replaced

    def _begin(self, node: int) -> None:
        root = self.root_of(node)
        start = EMPTY if is_place(self.node(node)) else self.shapes.longer(EMPTY, (root.kind.value, "root", root.name))
        self.shape[node] = self.loose[node] = start
        self.anchor[node], self.depth[node], self._inside[node], self._intended[node] = node, 0, False, False

    def _go_on(self, node: int, above: int) -> None:
        """The anchor is the first `.grad_fn` of a kept tensor, else the last reference that can be cut."""
        edge = self.edge[node]
        on_purpose = self.status[above][0] is Leaking.NO
        shape, loose = (EMPTY, EMPTY) if on_purpose else (self.shape[above], self.loose[above])
        if edge.kind not in SILENT:
            step = token(self.node(above), edge)
            shape, loose = self.shapes.longer(shape, step), self.shapes.longer(loose, self._without_key(above, step))
        self.shape[node], self.loose[node] = shape, loose
        self.depth[node] = self.depth[above] + 1
        self.forks[above] += 1
        held = self._inside[above]
        self._inside[node] = held or edge.kind is EdgeKind.GRAD_FN
        self.anchor[node] = self.anchor[above] if held or not is_cuttable(edge) else node

    def _without_key(self, holder: int, step: Token) -> Token:
        """The token for any item of a dictionary; of one that is a namespace it keeps the name."""
        is_named = holder in self.edge and is_namespace(self.edge[holder])
        return step if step[1] != EdgeKind.ITEM.value or is_named else (step[0], step[1], "[*]")


def is_place(node: Node) -> bool:
    """Whether a root is the node itself, so that the first reference is the node's and not the root's."""
    return node.kind in {NodeKind.MODULE, NodeKind.CLASS, NodeKind.FRAME}

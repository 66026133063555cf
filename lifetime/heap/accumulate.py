"""Where storages of many steps come together: the holder common to all generations, and its references to them.

Note [one class at a time]: only references that look the same can add up to growth. Three attributes that were each filled
once, in three different steps, are no leak; so births are joined upwards for one shape of chain at a time, and never past an
object that is alive on purpose: what hangs below ten layers, one of them new in each step, is ten caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lifetime.heap.chosen import Chosen
from lifetime.heap.fingerprint import Shape
from lifetime.heap.graph import History
from lifetime.heap.growth import births_of, grows
from lifetime.heap.model import Leaking, RootKind
from lifetime.heap.references import LONGEST_RUN, is_cuttable

_MADE_BY_THE_STEP = frozenset({RootKind.THREAD, RootKind.GLOBAL})
"""Roots of which a program may make one in each step: a thread, a module that it imports under a new number."""


@dataclass
class Accumulation:
    """A holder that grows: `references` are the nodes that it refers to, all of one `shape`, `anchors` the chains that end below
    it."""

    holder: int | None
    references: list[int]
    anchors: list[int]
    shape: Shape


def accumulations(chosen: Chosen, births: Mapping[int, int], history: History) -> list[Accumulation]:
    """The growing holders among the chains that end in `births`' anchors (a bit mask of steps for each).

    First by looks with the keys of dictionaries, then, of what is left, by looks without: a cache may get a new key in each
    step.
    """
    strict = _by_look(chosen, chosen.shape, births, history)
    taken = {anchor for one in strict for anchor in one.anchors}
    left = {anchor: steps for anchor, steps in births.items() if anchor not in taken}
    return strict + _by_look(chosen, chosen.loose, left, history)


def _by_look(chosen: Chosen, shape: Mapping[int, Shape], births: Mapping[int, int], history: History) -> list[Accumulation]:
    classes: dict[Shape, list[int]] = {}
    for anchor in births:
        classes.setdefault(shape[anchor], []).append(anchor)
    return [one for anchors in classes.values() for one in _in_class(chosen, shape, anchors, births, history)]


def _in_class(
    chosen: Chosen, shape: Mapping[int, Shape], anchors: Sequence[int], births: Mapping[int, int], history: History
) -> list[Accumulation]:
    joined = _joined(chosen, anchors, births)
    nearest = _Nearest(chosen, joined, history)
    below: dict[int, list[int]] = {}
    children: dict[int, dict[int, None]] = {}
    apart = []
    for anchor in anchors:
        found = nearest.of(anchor)
        if found is not None:
            below.setdefault(found[0], []).append(anchor)
            children.setdefault(found[0], {})[found[1]] = None
        elif chosen.root_of(anchor).kind in _MADE_BY_THE_STEP:
            apart.append(anchor)
    told = []
    for holder, own in below.items():
        references = _references(chosen, shape, holder, children[holder], joined)
        if nearest.grows(_union(joined, references)):
            told.append(Accumulation(_holder(chosen, references), references, own, shape[references[0]]))
    roots = {chosen.root_of(anchor).target for anchor in apart}
    if apart and nearest.grows(_union(births, apart)) and len(roots) >= _union(births, apart).bit_count():
        told.append(Accumulation(None, apart, apart, shape[apart[0]]))
    return told


class _Nearest:
    """The nearest growing holder above a node, and which of its references leads to the node. Every node is climbed once."""

    def __init__(self, chosen: Chosen, joined: Mapping[int, int], history: History) -> None:
        self._chosen = chosen
        self._joined = joined
        self._history = history
        self._masks: dict[int, bool] = {}
        self._found: dict[int, tuple[int, int] | None] = {}

    def grows(self, mask: int) -> bool:
        if mask not in self._masks:
            self._masks[mask] = grows(births_of(mask), self._history)
        return self._masks[mask]

    def of(self, node: int) -> tuple[int, int] | None:
        """The holder and its reference; a node that grows by itself is its own."""
        way = []
        above: int | None = node
        while above is not None and above in self._joined and above not in self._found:
            if self.grows(self._joined[above]):
                self._found[above] = (above, above)
                break
            way.append(above)
            above = self._chosen.above(above)
        found = self._found.get(above) if above is not None else None
        for below in reversed(way):
            if found is not None and found[0] == found[1]:
                found = (found[0], below)
            self._found[below] = found
        return self._found.get(node)


def _joined(chosen: Chosen, anchors: Sequence[int], births: Mapping[int, int]) -> dict[int, int]:
    """For each node above the anchors the births below it."""
    joined: dict[int, int] = {}
    for anchor in anchors:
        node: int | None = anchor
        while node is not None and births[anchor] & ~joined.get(node, 0):
            joined[node] = joined.get(node, 0) | births[anchor]
            alive_on_purpose = chosen.status[node][0] is Leaking.NO and node != anchor
            node = None if alive_on_purpose else chosen.above(node)
    return joined


def _references(
    chosen: Chosen, shape: Mapping[int, Shape], holder: int, children: Iterable[int], joined: Mapping[int, int]
) -> list[int]:
    """Of a holder's references those of the one look that leads to most generations.

    Where one alone leads to nearly all, the holder is an element of a linked list: its first `.next` is to blame.
    """
    looks: dict[Shape, list[int]] = {}
    for child in children:
        looks.setdefault(shape[child], []).append(child)
    most = max(looks.values(), key=lambda nodes: _union(joined, nodes).bit_count())
    trunk = [node for node in most if joined[node].bit_count() + 1 >= joined[holder].bit_count()]
    if len(trunk) == 1:
        most = [_top_of_run(chosen, shape, trunk[0], joined)]
    return list(dict.fromkeys(_cuttable(chosen, node) for node in most))


def _holder(chosen: Chosen, references: Sequence[int]) -> int | None:
    holders = {chosen.above(node) for node in references}
    return holders.pop() if len(holders) == 1 else None


def _top_of_run(chosen: Chosen, shape: Mapping[int, Shape], reference: int, joined: Mapping[int, int]) -> int:
    """The first reference of a run of the same ones, of elements that each hold something beside the next element."""
    top, node = reference, chosen.above(reference)
    steps, forks = 1, False
    while node is not None and node in joined and steps <= LONGEST_RUN:
        steps, forks = steps + 1, forks or chosen.forks[node] > 1
        if forks and shape[node] == shape[top]:
            top, steps, forks = node, 1, False
        node = chosen.above(node)
    return top


def _cuttable(chosen: Chosen, reference: int) -> int:
    """The reference, or the nearest one above it that can be taken away by itself."""
    while reference in chosen.edge and not is_cuttable(chosen.edge[reference]):
        above = chosen.above(reference)
        assert above is not None, "a reference with an edge has a holder"
        reference = above
    return reference


def _union(births: Mapping[int, int], nodes: Sequence[int]) -> int:
    union = 0
    for node in nodes:
        union |= births[node]
    return union

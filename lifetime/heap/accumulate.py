"""Where storages of many steps come together: the holder common to all generations, and its references to them.

Note [one class at a time]: only references that look the same can add up to growth. Three attributes that were each filled
once, in three different steps, are no leak; so births are joined upwards for one shape of chain at a time, and never past an
object that is alive on purpose: what hangs below ten layers, one of them new in each step, is ten caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lifetime.heap.chosen import Chosen
from lifetime.heap.fingerprint import Shape
from lifetime.heap.graph import History
from lifetime.heap.growth import births_of, grows
from lifetime.heap.model import Leaking, RootKind
from lifetime.heap.references import LONGEST_RUN, is_cuttable


@dataclass
class Accumulation:
    """A holder that grows: `references` are the nodes that it refers to, `anchors` the chains that end below it."""

    holder: int | None
    references: list[int]
    anchors: list[int] = field(default_factory=list)


def accumulations(chosen: Chosen, births: Mapping[int, int], history: History) -> list[Accumulation]:
    """The growing holders among the chains that end in `births`' anchors (a bit mask of steps for each), deepest holder first."""
    classes: dict[Shape, list[int]] = {}
    for anchor in births:
        classes.setdefault(chosen.shape[anchor], []).append(anchor)
    return [found for anchors in classes.values() for found in _in_class(chosen, anchors, births, history)]


def _in_class(chosen: Chosen, anchors: Sequence[int], births: Mapping[int, int], history: History) -> list[Accumulation]:
    joined = _joined(chosen, anchors, births)
    by_holder: dict[int, list[int]] = {}
    threads = []
    for anchor in anchors:
        holder = _nearest(chosen, anchor, joined, history)
        if holder is not None:
            by_holder.setdefault(holder, []).append(anchor)
        elif chosen.root_of(anchor).kind is RootKind.THREAD:
            threads.append(anchor)
    found = []
    for holder, below in by_holder.items():
        references = _references(chosen, holder, below, joined)
        if grows(births_of(_union(joined, references)), history):
            found.append(Accumulation(_holder(chosen, references), references, below))
    if threads and grows(births_of(_union(births, threads)), history):
        found.append(Accumulation(None, threads, threads))
    return found


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


def _nearest(chosen: Chosen, anchor: int, joined: Mapping[int, int], history: History) -> int | None:
    node: int | None = anchor
    while node is not None and node in joined:
        if grows(births_of(joined[node]), history):
            return node
        node = chosen.above(node)
    return None


def _references(chosen: Chosen, holder: int, anchors: list[int], joined: Mapping[int, int]) -> list[int]:
    """The holder's references of the one look that leads to most generations; its own where the anchor itself grows."""
    looks: dict[Shape, dict[int, None]] = {}
    for anchor in anchors:
        child = _child(chosen, holder, anchor)
        looks.setdefault(chosen.shape[child], {})[child] = None
    most = max(looks.values(), key=lambda nodes: _union(joined, list(nodes)).bit_count())
    return list(dict.fromkeys(_cuttable(chosen, _top_of_run(chosen, node, joined)) for node in most))


def _holder(chosen: Chosen, references: Sequence[int]) -> int | None:
    holders = {chosen.above(node) for node in references}
    return holders.pop() if len(holders) == 1 else None


def _top_of_run(chosen: Chosen, reference: int, joined: Mapping[int, int]) -> int:
    """In a linked list every element holds all the earlier ones: the first `.next` is to blame, not the last that still grows."""
    top, node = reference, chosen.above(reference)
    steps = 1
    while node in joined and node is not None and steps <= LONGEST_RUN:
        steps += 1
        if chosen.shape[node] == chosen.shape[top] and joined[node] != joined[top]:
            top, steps = node, 1
        node = chosen.above(node)
    return top


def _cuttable(chosen: Chosen, reference: int) -> int:
    """The reference, or the nearest one above it that can be taken away by itself."""
    while reference in chosen.edge and not is_cuttable(chosen.edge[reference]):
        above = chosen.above(reference)
        assert above is not None, "a reference with an edge has a holder"
        reference = above
    return reference


def _child(chosen: Chosen, holder: int, anchor: int) -> int:
    node = anchor
    while node != holder and (above := chosen.above(node)) != holder:
        assert above is not None, "the holder lies on the path to its anchor"
        node = above
    return node


def _union(births: Mapping[int, int], nodes: Sequence[int]) -> int:
    union = 0
    for node in nodes:
        union |= births[node]
    return union

"""Every holder, leak or not: for the questions "who holds this now?" and "who held the most?"."""

from __future__ import annotations

from collections.abc import Iterable

from lifetime.heap.blame import Blame
from lifetime.heap.chosen import Chosen
from lifetime.heap.fingerprint import Shape
from lifetime.heap.model import Verdict


def everyone(chosen: Chosen, storages: Iterable[int]) -> list[Blame]:
    """The storages by the shape of the reference that holds them. Their verdict says only that they are alive."""
    holders: dict[Shape, Blame] = {}
    for storage in storages:
        node = chosen.anchor[storage]
        holder = holders.setdefault(chosen.shape[node], Blame(Verdict.LINGERING, chosen.shape[node]))
        holder.references[node] = None
        holder.behind.append(storage)
    return list(holders.values())

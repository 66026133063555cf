"""The search in rounds: the quick readers first, the dearer ones where something is left that nobody is known to hold."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from lifetime.heap import native
from lifetime.heap.frames import Running
from lifetime.heap.graph import History, ObjectId, StorageId, Watched
from lifetime.heap.model import Gap
from lifetime.heap.search import Search
from lifetime.heap.threads import Handled

MOST_ROUNDS = 3
"""How often the dearer readers run again because of what they found."""


def survey(
    watched: Mapping[StorageId, Watched],
    history: History,
    stacks: tuple[Running, ...],
    handled: tuple[Handled, ...],
    *,
    hooks: bool = True,
) -> Search:
    """Who refers to the storages born after warm-up, directly or not. `hooks`: those of nodes too, for which one is registered and
    taken back."""
    with torch._C.DisableTorchFunction():
        search = Search(stacks, handled)
        wanted = {ObjectId(key) for key, one in watched.items() if one.birth_step >= history.first}
        search.climb_storages(wanted)
        for _ in range(MOST_ROUNDS):
            seen = len(search.visited)
            search.look_again(hooks)
            native.climb(search, wanted)
            if len(search.visited) == seen:
                break
    return search


def unread(search: Search) -> list[Gap]:
    """What the search could not read."""
    gaps = [Gap("readers", text) for text in search.gaps]
    if search.gave_up:
        gaps.append(Gap("search", "a chain is longer than the search goes: some holders are not reached"))
    return gaps

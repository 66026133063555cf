"""From the live search to ids and text: the graph that the judgement gets, and the names of its references on demand."""

from __future__ import annotations

import contextvars
import types
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, cast

from lifetime.heap import describe, labels, peek, threads
from lifetime.heap.graph import Edge, EdgeKind, Node, ObjectId, RootRef, Snapshot, StorageId, Watched
from lifetime.heap.model import Gap
from lifetime.heap.search import Search, owned_dict


def snapshot(search: Search, watched: Mapping[StorageId, Watched], garbage: frozenset[StorageId], gaps: Sequence[Gap]) -> Snapshot:
    """What the search visited, with every namespace told as part of its owner."""
    edges = _joined(search, [e for e in search.edges.values() if e.target in search.visited])
    nodes = _nodes(search, edges, watched)
    roots = [root for key, root in search.roots.items() if key in nodes]
    return Snapshot(nodes, tuple(edges), _renamed(roots), watched, garbage, tuple(gaps))


def _joined(search: Search, edges: Sequence[Edge]) -> list[Edge]:
    """`owner -> __dict__ -> value` becomes `owner -> value`."""
    alike = _by_type(search)
    owner = _parts(alike)
    for edge in edges:
        is_candidate = edge.kind is EdgeKind.INTERNAL and edge.target not in owner
        if is_candidate and owned_dict(search.objects.get(edge.source), search.objects.get(edge.target)):
            owner[edge.target] = edge.source
    trees = {key for things in alike if threads.is_hamt(things[0][1]) for key, _ in things}
    kept = _variables(search, alike, trees)
    for edge in edges:
        if edge.target in owner and owner.get(edge.source, edge.source) == owner[edge.target]:
            continue
        if edge.source in trees:
            continue  # told as the items of its contexts
        kept.append(replace(edge, source=owner[edge.source]) if edge.source in owner else edge)
    return kept


Alike = list[tuple[ObjectId, Any]]
"""Objects of one type, with their addresses."""


def _by_type(search: Search) -> list[Alike]:
    found: defaultdict[int, Alike] = defaultdict(list)
    for key, thing in search.objects.items():
        found[id(type(thing))].append((key, thing))
    return list(found.values())


def _parts(alike: Sequence[Alike]) -> dict[ObjectId, ObjectId]:
    """The dictionaries of each `threading.local` that was met, which are told as part of it."""
    found: dict[ObjectId, ObjectId] = {}
    for things in alike:
        for key, thing in things if threads.is_local(things[0][1]) else ():
            for space in (*threads.tables(thing), *threads.namespaces(thing)):
                found[ObjectId(id(space))] = key
    return found


def _variables(search: Search, alike: Sequence[Alike], trees: AbstractSet[ObjectId]) -> list[Edge]:
    """What contexts hold, as their items. Contexts share the tree in between: what is one reference counts for one of them."""
    left = Counter({e.target: e.count for e in search.edges.values() if e.source in trees})
    found = []
    for things in alike:
        for key, thing in things if peek.is_a(things[0][1], contextvars.Context) else ():
            for variable, value in cast(contextvars.Context, thing).items():
                target = ObjectId(id(value))
                if target in left:
                    count = min(left[target], 1)
                    left[target] -= count
                    found.append(Edge(key, target, EdgeKind.ITEM, threads.variable_text(variable), count))
    return found


def _cell_names(search: Search) -> dict[ObjectId, str]:
    """The variables that cells are for, by the functions whose closures they lie in."""
    found: dict[ObjectId, str] = {}
    for thing in search.objects.values():
        if type(thing) is types.FunctionType:
            cells = (ObjectId(id(cell)) for cell in thing.__closure__ or ())
            found.update(zip(cells, thing.__code__.co_freevars, strict=False))
    return found


def _nodes(search: Search, edges: Sequence[Edge], watched: Mapping[StorageId, Watched]) -> dict[ObjectId, Node]:
    running = {ObjectId(frame.frame): frame for frame in search.found_roots.frames}
    nodes: dict[ObjectId, Node] = {}
    cells = _cell_names(search)
    ends: defaultdict[ObjectId, None] = defaultdict()
    for edge in edges:
        ends[edge.source] = ends[edge.target] = None
    ends.update(dict.fromkeys(map(ObjectId, watched.keys() & search.storages.keys())))
    for key in ends:
        if StorageId(key) in search.storages:
            nodes[key] = describe.storage(StorageId(key))
        elif key in search.native_owners:
            nodes[key] = describe.native_owner(key, search.native_owners[key])
        elif key in running:
            nodes[key] = describe.frame(key, running[key].function, running[key].where)
        elif key in search.objects:
            one = describe.node(search.objects[key])
            nodes[key] = replace(one, label=f"cell {cells[key]}") if key in cells else one
    return nodes


def _renamed(roots: Sequence[RootRef]) -> tuple[RootRef, ...]:
    return tuple(replace(root, name=_plain(root.name), where=describe.shown(root.where) if root.where else None) for root in roots)


def _plain(name: str) -> str:
    return name.replace(".<locals>", "")


class Labels:
    """Names references when they are needed: for chosen chains only."""

    def __init__(self, objects: Mapping[ObjectId, Any]) -> None:
        self._objects = objects
        self._known: dict[Edge, Edge] = {}

    def __call__(self, edges: Sequence[Edge]) -> list[Edge]:
        by_holder: defaultdict[ObjectId, list[Edge]] = defaultdict(list)
        for edge in edges:
            if edge.kind is EdgeKind.INTERNAL and not edge.name and edge not in self._known:
                by_holder[edge.source].append(edge)
        for source, fresh in by_holder.items():
            names = labels.label_all(self._objects[source], [edge.target for edge in fresh])
            self._known.update((edge, replace(edge, kind=names[edge.target][0], name=names[edge.target][1])) for edge in fresh)
        return [self._known.get(edge, edge) for edge in edges]

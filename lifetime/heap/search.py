"""The search backwards, level by level: from storages through whoever refers to them, in Python and in C++, up to the roots.

gc answers for a whole frontier in one sweep; what C++ holds is known beforehand, from a walk forward over the autograd graph
whose edges are followed in reverse without a sweep.
"""

from __future__ import annotations

import gc
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from lifetime.heap import autograd, peek, scan
from lifetime.heap.frames import Running
from lifetime.heap.graph import Edge, EdgeKind, Layer, ObjectId, RootRef, StorageId
from lifetime.heap.hooks import TENSOR_HOOKS, TensorHooks
from lifetime.heap.model import RootKind
from lifetime.heap.roots import Roots
from lifetime.heap.threads import Handled
from lifetime.heap.watch import watched_types

MOST_LEVELS = 80
"""Sweeps before the search gives up: a linked list costs one a link."""


class Search:
    """`objects` are the live holders by address, `edges` what was found, `roots` where it ended, `storages` live storage
    wrappers by address of the C++ storage, `came_from` the reference over which an object was first reached."""

    def __init__(self, frames: tuple[Running, ...], handled: tuple[Handled, ...] = ()) -> None:
        self.everything: Sequence[object] = scan.universe()
        self.found_roots = Roots(frames, handled)
        self.objects: dict[ObjectId, object] = {}
        self.edges: dict[tuple[ObjectId, ObjectId, EdgeKind, str], Edge] = {}
        self.roots: dict[ObjectId, RootRef] = {}
        self.storages: dict[StorageId, ObjectId] = {}
        self.came_from: dict[ObjectId, Edge] = {}
        self.visited: set[ObjectId] = set()
        self.native_owners: dict[ObjectId, str] = {}
        self._bare: dict[StorageId, object] = {}
        self.gave_up = False
        self.gaps: dict[str, None] = {}
        self.into: defaultdict[ObjectId, list[Edge]] = defaultdict(list)
        self._told: set[tuple[ObjectId, ObjectId]] = set()
        self._frame_roots = {root.target: root for root in self.found_roots.frame_roots()}
        self._handled = {root.target: root for root in self.found_roots.handled_roots()}
        self._locals: defaultdict[int, list[tuple[ObjectId, str]]] = defaultdict(list)
        for frame in frames:
            for name, address in frame.slots:
                self._locals[address].append((ObjectId(frame.frame), name))
        self._walk()

    def forget(self) -> None:
        """Let go of every live object."""
        self.everything = ()
        self.objects.clear()
        self._bare.clear()

    def nodes(self) -> Iterator[object]:
        """The autograd nodes that live."""
        return (thing for thing in list(self.objects.values()) if autograd.is_node(thing))

    def _walk(self) -> None:
        """Forward from every live tensor, storage and node over what C++ refers to."""
        queue = scan.of_types(self.everything, watched_types())
        for thing in queue:
            self.objects.setdefault(ObjectId(id(thing)), thing)
        for thing in queue:  # grows as we go
            if peek.is_a(thing, torch.UntypedStorage):
                self._bare[StorageId(thing._cdata)] = thing  # type: ignore[attr-defined]
                continue
            for reference in autograd.references(thing):
                known = ObjectId(id(reference.target)) in self.objects
                edge = self.add(thing, reference.target, reference.kind, reference.name, reference.layer)
                if not known and reference.kind is not EdgeKind.STORAGE:
                    self.came_from[edge.target] = edge
                    if peek.is_tensor(reference.target) or autograd.is_node(reference.target):
                        queue.append(reference.target)

    def add(self, holder: object, target: object, kind: EdgeKind, name: str, layer: Layer = Layer.WRAPPER, count: int = 1) -> Edge:
        """Note a reference; a storage goes by the address of its C++ half."""
        source, into = ObjectId(id(holder)), ObjectId(id(target))
        if kind is EdgeKind.STORAGE:
            storage = StorageId(target._cdata)  # type: ignore[attr-defined]
            into = ObjectId(storage)
            self.storages.setdefault(storage, ObjectId(id(target)))
        else:
            self.objects.setdefault(into, target)
        self.objects.setdefault(source, holder)
        return self.add_edge(Edge(source, into, kind, name, count, layer))

    def add_edge(self, edge: Edge) -> Edge:
        key = (edge.source, edge.target, edge.kind, edge.name)
        if key not in self.edges:
            self.edges[key] = edge
            self.into[edge.target].append(edge)
            if edge.kind is not EdgeKind.INTERNAL:
                self._told.add((edge.source, edge.target))
        return self.edges[key]

    def climb_storages(self, wanted: AbstractSet[ObjectId]) -> None:
        """Search backwards from storages: from their tensors, and from their own wrappers in the same first sweep. A storage caches
        its wrapper: that one counts where somebody refers to it."""
        wrappers = [wrapper for _, wrapper in self.bare(wanted)]
        held = self._holders_of([*self._close(wanted), *wrappers])
        for wrapper in wrappers:
            if self.into[ObjectId(id(wrapper))]:
                self.visited.add(ObjectId(id(wrapper)))
                self.add(wrapper, wrapper, EdgeKind.STORAGE, ".untyped_storage()", Layer.STORAGE)
        self.climb(held)

    def climb_again(self, start: Iterable[ObjectId]) -> None:
        """Climb from holders that were found above nodes which have been visited."""
        fresh = set(start)
        below = {edge.target for edge in self.edges.values() if edge.source in fresh and edge.target in self.visited}
        self.visited -= below
        self.climb([*below, *fresh])

    def bare(self, wanted: Iterable[ObjectId]) -> Iterator[tuple[ObjectId, Any]]:
        """The storages among `wanted`, live."""
        return ((key, self._bare[StorageId(key)]) for key in wanted if StorageId(key) in self._bare)

    def tensors_of(self, storage: ObjectId) -> list[Any]:
        """The live tensors that are known to lie in a storage."""
        sources = [edge.source for edge in self.into[storage] if edge.kind is EdgeKind.STORAGE]
        return [thing for key in sources if peek.is_tensor(thing := self.objects.get(key))]

    def add_owner(self, holder: object, storage: ObjectId, name: str) -> None:
        """Note an owner in C++ of the storage itself."""
        self.objects.setdefault(ObjectId(id(holder)), holder)
        self.storages.setdefault(StorageId(storage), storage)
        self.add_edge(Edge(ObjectId(id(holder)), storage, EdgeKind.NATIVE, name, 1, Layer.STORAGE))

    def add_native_owner(self, name: str, storages: Iterable[ObjectId]) -> None:
        """An owner in C++, a root without any object, that holds these storages: what is known to lie above them and is held by
        nobody else, or their tensors."""
        owner = ObjectId(-1 - len(self.native_owners))
        self.native_owners[owner] = name
        self.roots[owner] = RootRef(owner, RootKind.NATIVE, name)
        for storage in storages:
            for top in self._tops(storage) or [e.source for e in self.into[storage] if e.kind is EdgeKind.STORAGE]:
                layer = Layer.TENSOR if peek.is_tensor(self.objects.get(top)) else Layer.WRAPPER
                self.add_edge(Edge(owner, top, EdgeKind.NATIVE, "<owns>", 1, layer))

    def _tops(self, node: ObjectId) -> list[ObjectId]:
        """Those above the node that nobody is known to hold."""
        seen = {node}
        queue = [node]
        for one in queue:  # grows as we go
            above = [edge.source for edge in self.into[one] if edge.source not in seen and edge.source not in self.roots]
            seen.update(above)
            queue += above
        return [one for one in queue if one != node and not self.into[one]]

    def climb(self, start: Iterable[ObjectId]) -> None:
        """Search backwards from the nodes in `start` until only roots and dead ends are left."""
        frontier = [node for node in start if node not in self.visited]
        for _ in range(MOST_LEVELS):
            if not frontier:
                return
            frontier = self._holders_of(self._close(frontier))
        self.gave_up = self.gave_up or bool(frontier)

    def _close(self, frontier: Iterable[ObjectId]) -> list[object]:
        """The frontier and all that is known to lead to it without a sweep, as live objects."""
        todo, live = list(frontier), []
        while todo:
            node = todo.pop()
            if node in self.visited:
                continue
            self.visited.add(node)
            self._add_locals(node)
            if node in self._handled:
                self.roots[node] = self._handled[node]
            if node in self.roots:
                continue
            todo += [edge.source for edge in self.into[node] if edge.source not in self.visited]
            thing = self.objects.get(node)
            if thing is not None:
                live.append(thing)
        return live

    def _add_locals(self, node: ObjectId) -> None:
        """Running frames that refer to the node: they are roots."""
        for frame, name in self._locals.get(node, ()):
            self.add_edge(Edge(frame, node, EdgeKind.LOCAL, f".{name}"))
            self.roots[frame] = self._frame_roots[frame]

    def _holders_of(self, live: Sequence[object], thoroughly: bool = False) -> list[ObjectId]:
        """Those that gc sees refer to `live`, as the next frontier."""
        found = scan.referrers(live, self.everything, thoroughly=thoroughly) if live else ()
        frontier = []
        for holder, counts in found:
            source = self._source(holder)
            for target, count in counts.items():
                if (source, target) not in self._told:  # gc shows a tensor's ctx as well: that has its name already
                    self.add_edge(Edge(source, ObjectId(target), EdgeKind.INTERNAL, "", count))
            if source not in self.roots:
                frontier.append(source)
        return frontier

    def _source(self, holder: object) -> ObjectId:
        """The node of a holder: a module stands for its namespace."""
        holder = self.found_roots.owner_of(holder) or holder
        source = ObjectId(id(holder))
        self.objects.setdefault(source, holder)
        root = self.found_roots.of(holder)
        if root is not None:
            self.roots[source] = root
        return source

    def unrooted(self, wanted: Iterable[ObjectId]) -> set[ObjectId]:
        """Those of `wanted` that no root leads to."""
        below: defaultdict[ObjectId, list[ObjectId]] = defaultdict(list)
        for edge in self.edges.values():
            below[edge.source].append(edge.target)
        todo, reached = list(self.roots), set(self.roots)
        while todo:
            fresh = [node for node in below[todo.pop()] if node not in reached]
            reached.update(fresh)
            todo += fresh
        return {node for node in wanted if node not in reached}

    def dead_ends(self) -> list[object]:
        """Visited objects that nobody refers to, as far as is known, and that are no roots."""
        return [
            thing
            for node in self.visited
            if node not in self.roots and not self.into[node] and (thing := self.objects.get(node)) is not None
        ]

    def look_again(self, hooks: bool = True) -> None:
        """The slower, complete sweep for dead ends: some types show their referents and are never shown as referrers
        (`_asyncio.Task` on 3.11), and hooks on C++ nodes hang on a dictionary that no sweep connects."""
        ends = self.dead_ends()
        self._connect_hooks({id(end): end for end in ends if peek.is_a(end, dict)}, hooks)
        for end in ends:
            root = self.found_roots.of_dead_end(end)
            if root is not None:
                self.roots[root.target] = root
        frontier = self._holders_of([end for end in ends if gc.is_tracked(end)], thoroughly=True)
        self.climb(frontier)
        self.climb_again({edge.source for edge in self.edges.values() if edge.kind is EdgeKind.HOOK})

    def _connect_hooks(self, dicts: dict[int, object], register: bool) -> None:
        """Hooks on nodes, which show only where one more is registered, and hooks of tensors that are gone, which their nodes
        keep."""
        if not dicts:
            return
        gone = TensorHooks()
        for node in self.nodes():
            for name, found in autograd.hook_dicts(node) if register else ():
                if id(found) in dicts:
                    self.add(node, found, EdgeKind.HOOK, f".{name}")
            for address in gone.of(node, dicts.keys()):
                self.add(node, dicts[address], EdgeKind.HOOK, TENSOR_HOOKS)
        gone.end()


_WITHOUT_NAMESPACE = frozenset(id(kind) for kind in (dict, list, tuple, set, frozenset, types.CellType))


def owned_dict(holder: object, space: object) -> bool:
    """Whether `space` is the namespace of `holder`: then an attribute is told as one reference, not two."""
    if type(space) is not dict or id(type(holder)) in _WITHOUT_NAMESPACE or peek.is_a(holder, dict):
        return False
    if peek.is_class(holder):
        return any(found is space for found in gc.get_referents(holder) if type(found) is dict)
    return not peek.is_a(holder, types.FrameType) and peek.attributes(holder) is space

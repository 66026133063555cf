"""What the run shows at the sites that lint found: hits, captures, and which leaves outlive the call and the step.

Note [leaves by weak reference]: a leaf is held by nothing here. Its Python object may be met again at the boundary, where its
`.grad` is asked for; a wrapper that C++ alone keeps is preserved by torch, so its weak reference stays good.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from lifetime.heap.graph import StorageId
from lifetime.heap.model import Gap, Reader, Site, SiteVerdict
from lifetime.tracer import device, graphpool
from lifetime.tracer.reads import Reads, unseen_grad
from lifetime.tracer.spots import Spot

MOST_DEPTH = 3
"""How deep a container is looked into for tensors: `{name: [leaf, ...]}` is two."""


@dataclass
class _Seen:
    """The state of one site. `held` maps a storage to the bytes with which it was alive at a judged boundary."""

    spot: Spot
    hits: int = 0
    captured: int = 0
    pool: graphpool.Pool | None = None
    leaves: list[weakref.ref[Any]] = field(default_factory=list)
    fresh: list[weakref.ref[Any]] = field(default_factory=list)
    judged: int = 0
    held_bytes: int = 0
    call_bytes: int = 0
    outlived_bytes: int = 0
    storages: set[StorageId] = field(default_factory=set)


class Sites:
    """All sites of a run. `on_watch` is what rewritten code reports to; between hits it costs nothing.

    `spots` is the table that the import hook fills while modules are imported.
    """

    def __init__(self, spots: Mapping[str, Spot]) -> None:
        self._spots = spots
        self._seen: dict[str, _Seen] = {}
        self._waiting: set[int] = set()
        self.reads = Reads()

    def on_watch(self, key: str, value: Any) -> None:
        spot = self._spots.get(key)
        if spot is None:
            return
        seen = self._seen.setdefault(key, _Seen(spot))
        seen.hits += 1
        if device.capturing():
            seen.captured += 1
            seen.pool = seen.pool or _pool(value, spot.of_gradient)
        for tensor in _tensors(value, MOST_DEPTH):
            leaf = weakref.ref(tensor)
            seen.leaves.append(leaf)
            seen.fresh.append(leaf)
            if seen.spot.of_gradient:
                self.reads.follow(tensor, key, seen.spot)
        self._when_the_call_has_ended()

    def at_boundary(self, judged: bool) -> None:
        """A step has ended: which leaves are still there?"""
        for seen in self._seen.values():
            self._call_ended(seen)
            alive = dict(_alive(seen.leaves, seen.spot.of_gradient))
            if judged:
                seen.judged += 1
                new = dict(_alive(seen.fresh, seen.spot.of_gradient))
                seen.held_bytes += sum(new.values())
                seen.outlived_bytes += max(seen.call_bytes, sum(new.values()))
                seen.storages |= alive.keys()
            seen.leaves = [leaf for leaf in seen.leaves if leaf() is not None]
            seen.fresh, seen.call_bytes = [], 0

    def storages(self) -> dict[StorageId, list[str]]:
        """The storages of leaves (and of their gradients) that outlived a step, and the keys of their sites."""
        found: dict[StorageId, list[str]] = {}
        for key, seen in self._seen.items():
            for storage in seen.storages:
                found.setdefault(storage, []).append(key)
        return found

    def report(self, survivors: dict[str, list[str]]) -> tuple[Site, ...]:
        """The sites, by path and line. `survivors` are the fingerprints that a site's leaves belong to, by its key."""
        seen = [self._seen.get(key, _Seen(spot)) for key, spot in self._spots.items()]
        sites = [_site(one, survivors.get(one.spot.key, []), self.reads.of(one.spot.key)) for one in seen]
        return tuple(sorted(sites, key=lambda site: (site.path, site.line, site.code)))

    def gaps(self) -> list[Gap]:
        """What the observation cannot tell, and what a capture means for the gradients."""
        reached = [seen for seen in self._seen.values() if seen.spot.of_gradient]
        told = [Gap(f"{s.spot.path}:{s.spot.line}", graphpool.sentence(s.pool)) for s in reached if s.pool]
        open_ = [seen.spot for seen in self._seen.values() if seen.hits and not seen.judged]
        told += [
            Gap(f"{spot.path}:{spot.line}", "it ran, but no step after warm-up ended: nothing is known of it") for spot in open_
        ]
        if reached:
            told.append(Gap("sites", "reads of .grad from C++ are not seen"))
        if self._spots and _has_compiled():
            told.append(Gap("sites", "what torch.compile captured is not watched: a site in it looks as if it were never reached"))
        return told

    def _when_the_call_has_ended(self) -> None:
        """Look again when the backward pass that runs this call is over (it is too early in the call itself)."""
        task = torch._C._current_graph_task_id()
        if task < 0 or task in self._waiting:
            return
        self._waiting.add(task)

        def ended() -> None:
            self._waiting.discard(task)
            for seen in self._seen.values():
                self._call_ended(seen)

        torch.autograd.Variable._execution_engine.queue_callback(ended)

    def _call_ended(self, seen: _Seen) -> None:
        if seen.fresh:
            seen.call_bytes = max(seen.call_bytes, sum(dict(_alive(seen.fresh, seen.spot.of_gradient)).values()))


def _has_compiled() -> bool:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return bool(counters.get("stats", {}).get("calls_captured"))


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        yield value
    elif depth and kind in {list, tuple, set}:
        for item in value:
            yield from _tensors(item, depth - 1)
    elif depth and kind is dict:
        for item in value.values():
            yield from _tensors(item, depth - 1)


def _pool(value: Any, of_gradient: bool) -> graphpool.Pool | None:
    tensors = [_gradient(t) if of_gradient else t for t in _tensors(value, MOST_DEPTH)]
    addresses = [t.data_ptr() for t in tensors if t is not None]
    return device.pool_of(addresses[0]) if addresses else None


def _alive(leaves: list[weakref.ref[Any]], of_gradient: bool) -> Iterator[tuple[StorageId, int]]:
    """Storages and bytes of what a site's leaves keep: their gradients, or (other rules) themselves."""
    with torch._C.DisableTorchFunction():
        for reference in leaves:
            leaf = reference()
            kept = leaf if leaf is None or not of_gradient else _gradient(leaf)
            if kept is not None and kept.layout is torch.strided:
                storage = kept.untyped_storage()
                yield StorageId(storage._cdata), storage.nbytes()


def _gradient(leaf: torch.Tensor) -> torch.Tensor | None:
    # Asking a tensor that is no leaf warns, and it has none unless it was asked to retain it.
    return unseen_grad(leaf) if leaf.is_leaf or leaf.retains_grad else None


def _site(seen: _Seen, survivors: list[str], reads: Counter[tuple[str, int, str]]) -> Site:
    readers = tuple(Reader(path, line, function, count) for (path, line, function), count in sorted(reads.items()))
    steps = max(seen.judged, 1)
    return Site(
        code=seen.spot.code,
        path=seen.spot.path,
        line=seen.spot.line,
        function=seen.spot.function,
        hits=seen.hits,
        captured_hits=seen.captured,
        verdict=_verdict(seen),
        survivors=tuple(survivors),
        bytes_per_step=seen.held_bytes // steps,
        outlived_call_bytes=seen.outlived_bytes // steps,
        readers=readers,
        context=seen.spot.context,
    )


def _verdict(seen: _Seen) -> SiteVerdict:
    """Where no step ended after a hit nothing is known of it: not refuted, and `gaps` says why."""
    if not seen.judged:
        return SiteVerdict.NOT_REACHED
    return SiteVerdict.CONFIRMED if seen.storages else SiteVerdict.REFUTED

"""What the running program's side remembers between boundaries: C++ weak references to storages, with the step of their birth.

Note [nothing is kept alive]: a storage is remembered by a C++ weak reference, a tensor by a Python one; whatever else is met
lives for one call of `observe`. While a weak reference to a storage is held its address cannot be reused: the address is its
name.

Note [young objects]: with automatic collection off, generation 0 lists all that was made since the last collection: 1 ms in place
of 34 ms at a million objects. Tensors seen earlier are remembered by weak reference, since their `.grad` and their graph change.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import autograd, peek, scan
from lifetime.heap.graph import Death, StorageId, Watched
from lifetime.heap.shells import address, is_shell

MOST_YOUNG = 200_000
"""With more young objects than this the list of the young is no shorter way."""


def subclasses(kind: type) -> dict[int, type]:
    """A class and all classes under it, by id: a metaclass may refuse to be hashed."""
    found, queue = {id(kind): kind}, [kind]
    while queue:
        for one in peek.subclasses(queue.pop()):
            if id(one) not in found:
                found[id(one)] = one
                queue.append(one)
    return found


def watched_types() -> set[int]:
    """The ids of the types whose instances can own a storage that gc shows nowhere else: tensors, storages, autograd nodes."""
    found = {id(kind) for kind in vars(torch._C._functions).values() if type(kind) is type}
    for kind in (torch.Tensor, torch.UntypedStorage, torch._C._FunctionBase):
        found.update(subclasses(kind))
    return found


@dataclass
class _Entry:
    ref: Any
    birth_step: int
    last_step: int
    nbytes: int


_weak: Callable[[torch.UntypedStorage], StorageWeakRef] = StorageWeakRef


class Watch:
    """The storages that were alive at a boundary; with `addresses`, where their data lies. Not for several threads at once."""

    def __init__(self, addresses: bool = False) -> None:
        self._addresses = addresses
        self._entries: dict[StorageId, _Entry] = {}
        self._deaths: Counter[tuple[int, int, int, bool]] = Counter()
        self._listing = Listing()
        self._oldest = 0
        self._collected: set[StorageId] = set()

    def observe(self, step: int) -> int:
        """The bytes of all storages alive now, each counted once. What was not seen before is noted as born in `step`."""
        with torch._C.DisableTorchFunction():
            for storage in _storages(self._listing.alive()):
                self._note(storage, step)
        self._bury()
        return sum(entry.nbytes for entry in self._entries.values())

    def alive(self) -> dict[StorageId, Watched]:
        """The storages alive now that were born at `forget_before`'s step or later."""
        self._bury()
        born = {key: entry for key, entry in self._entries.items() if entry.birth_step >= self._oldest}
        return {key: Watched(key, entry.birth_step, entry.nbytes, address=self._address(key)) for key, entry in born.items()}

    def _address(self, key: StorageId) -> int | None:
        return address(key) if self._addresses else None

    def forget_before(self, step: int) -> None:
        """Leave what was born before `step` out of `alive` and of `deaths`; it is still known not to be new."""
        self._oldest = step

    def deaths(self) -> tuple[Death, ...]:
        """The storages that outlived a boundary and died at a later one."""
        kept = sorted((key, count) for key, count in self._deaths.items() if key[0] >= self._oldest)
        return tuple(Death(birth, last, size, count, collected) for (birth, last, size, collected), count in kept)

    def youngest(self, most: int) -> list[tuple[StorageId, Any]]:
        """Weak references to the `most` storages that were born last."""
        entries = sorted(self._entries.items(), key=lambda one: one[1].birth_step)
        return [(key, entry.ref) for key, entry in entries[-most:]]

    def died_in_collection(self, storages: Iterable[StorageId]) -> None:
        """Python's gc freed these since the last boundary: a cycle held them."""
        self._collected.update(storages)

    def _note(self, storage: torch.UntypedStorage, step: int) -> None:
        key = StorageId(storage._cdata)
        entry = self._entries.get(key)
        if entry is None:
            if is_shell(storage):
                return
            self._entries[key] = _Entry(_weak(storage), step, step, storage.nbytes())
        else:
            entry.nbytes, entry.last_step = storage.nbytes(), step

    def _bury(self) -> None:
        for key in [key for key, entry in self._entries.items() if entry.ref.expired()]:
            entry = self._entries.pop(key)
            self._deaths[entry.birth_step, entry.last_step, entry.nbytes, key in self._collected] += 1
        self._collected.clear()


class Listing:
    """The live tensors, storages and nodes; see Note [young objects]."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Any]] = {}
        self._epoch: tuple[object, ...] | None = None

    def alive(self) -> list[Any]:
        """All of them, strongly: let go at once."""
        kinds = watched_types()
        if self._epoch is None or self._epoch != _epoch() or gc.get_count()[0] > MOST_YOUNG:
            found = scan.of_types(gc.get_objects(), kinds)
        else:
            found = scan.of_types(gc.get_objects(generation=0), kinds)
            young = set(map(id, found))
            found.extend(one for one in (ref() for ref in self._known.values()) if one is not None and id(one) not in young)
        self._epoch = _epoch() if self._remember(found) else None
        return found

    def _remember(self, found: list[Any]) -> bool:
        """Weak references to the tensors, or False where one would be in the program's way."""
        if _collects() or torch.__future__.get_swap_module_params_on_conversion():
            self._known.clear()
            return False
        self._known = {key: ref for key, ref in self._known.items() if ref() is not None}
        for one in found:
            if peek.is_tensor(one) and id(one) not in self._known:
                if (
                    peek.class_attribute(type(one), "__tensor_flatten__") is not None
                ):  # torch swaps these, and refuses where a weak reference exists
                    return False
                self._known[id(one)] = weakref.ref(one)
        return True


def _collects() -> bool:
    """Whether a collection may start by itself: a first threshold of 0 keeps it from that as `gc.disable()` does."""
    return gc.isenabled() and gc.get_threshold()[0] > 0


def _epoch() -> tuple[object, ...]:
    """Changes when young objects may have moved to another generation."""
    return (_collects(), gc.get_freeze_count(), *(generation["collections"] for generation in gc.get_stats()))


def _storages(things: list[Any]) -> Iterator[torch.UntypedStorage]:
    """The storages that can be reached in C++ from tensors, storages and nodes, each at least once."""
    seen, queue = set(map(id, things)), list(things)
    for thing in queue:  # grows as we go, and holds all that was seen: an id in `seen` must not be used again
        if peek.is_a(thing, torch.UntypedStorage):
            yield thing
        elif peek.is_tensor(thing) or autograd.is_node(thing):
            following = [one.target for one in autograd.references(thing)]
            for one in following:
                if id(one) not in seen:
                    seen.add(id(one))
                    queue.append(one)

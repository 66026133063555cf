"""Passes over the heap: who refers to a whole frontier, and all objects of some types. Each pass is one sweep at C speed.

Note [what was there]: in the child `gc.freeze(); gc.unfreeze()` moves every object to the oldest generation, so that generation
0 holds exactly what the tool itself made since. The oldest generation is the universe; it needs no set of a million addresses.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from lifetime.heap import peek

CHUNK = 2048
SMALL = 32
FEW = 64
"""Up to so many targets one `gc.get_referrers` is the quicker sweep; it takes time in proportion to them."""
OLDEST = 2


_is_settled = False


def settle() -> None:
    """Make the present the universe. Thaws what the program froze: for the child only."""
    global _is_settled
    _is_settled = True
    gc.disable()
    gc.freeze()
    gc.unfreeze()


def universe() -> list[object]:
    """Every object that gc tracked when `settle` was called and that is alive; without that, every one that gc tracks now."""
    return gc.get_objects(generation=OLDEST if _is_settled else None)


def of_types(objects: Sequence[object], kinds: AbstractSet[int]) -> list[object]:
    """The objects whose very type has its id in `kinds`."""
    return [one for part in _hit(objects, kinds, _type_ids) for one in part if id(type(one)) in kinds]


def referrers(
    targets: Sequence[object], everything: Sequence[object], *, thoroughly: bool = False
) -> Iterator[tuple[object, dict[int, int]]]:
    """Each object that gc sees refer to a target, with how often it refers to which (by id).

    A reference of an instance to its own type is left out. `everything` is `universe()`. `thoroughly` asks each object what it
    refers to: a few types never answer the other question.
    """
    wanted = {id(one) for one in targets}
    if _is_settled and not thoroughly and len(wanted) <= FEW and gc.get_freeze_count() == 0:
        holders = gc.get_referrers(*targets)
        ours = made_among(set(map(id, holders)))
        candidates: Iterable[object] = (one for one in holders if id(one) not in ours)
    else:
        candidates = (one for part in _hit(everything, wanted, _referent_ids) for one in part)
    for one in candidates:
        counts = references(one, wanted)
        if counts:
            yield one, counts


def references(holder: object, wanted: AbstractSet[int]) -> dict[int, int]:
    """How often `holder` refers to each of the `wanted` ids, its own type apart."""
    counts: dict[int, int] = {}
    for address in map(id, gc.get_referents(holder)):
        if address in wanted:
            counts[address] = counts.get(address, 0) + 1
    kind = id(type(holder))
    if kind in counts and not peek.is_class(holder):
        counts[kind] -= 1
        if not counts[kind]:
            del counts[kind]
    return counts


def _type_ids(objects: Sequence[object]) -> Iterator[int]:
    return map(id, map(type, objects))


def _referent_ids(objects: Sequence[object]) -> Iterator[int]:
    return map(id, gc.get_referents(*objects))


def _hit(
    objects: Sequence[object], wanted: AbstractSet[int], ids: Callable[[Sequence[object]], Iterator[int]]
) -> Iterator[Sequence[object]]:
    """Parts of `objects`, small ones, in which something has an id that is wanted."""
    for start in range(0, len(objects), CHUNK):
        chunk = objects[start : start + CHUNK]
        if not wanted.isdisjoint(ids(chunk)):
            for low in range(0, len(chunk), SMALL):
                part = chunk[low : low + SMALL]
                if not wanted.isdisjoint(ids(part)):
                    yield part


def made_among(addresses: set[int]) -> set[int]:
    """The addresses among them of what the tool itself made since `settle`."""
    return addresses.intersection(map(id, gc.get_objects(generation=0)))

"""What the captures of a run showed, and its join with the sites. No torch: a program may never import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lifetime.heap.graph import StorageId
from lifetime.heap.model import Gap, Survivor


@dataclass(frozen=True)
class Seen:
    """`members` are the storages of each survivor, by its fingerprint."""

    survivors: tuple[Survivor, ...] = ()
    gaps: tuple[Gap, ...] = ()
    members: Mapping[str, tuple[StorageId, ...]] = field(default_factory=dict)


def by_site(members: Mapping[str, Iterable[StorageId]], sites: Mapping[StorageId, Iterable[str]]) -> dict[str, list[str]]:
    """The fingerprints of the survivors that each site's leaves are part of. `sites` gives the sites of a storage."""
    found: dict[str, list[str]] = {}
    for fingerprint, held in members.items():
        for key in sorted({key for storage in held for key in sites.get(storage, ())}):
            found.setdefault(key, []).append(fingerprint)
    return found

"""What the captures of a run showed, and its join with the sites. No torch: a program may never import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lifetime.errors import CaptureError
from lifetime.heap.answer import DEADLINE
from lifetime.heap.graph import StorageId
from lifetime.heap.model import Gap, Survivor

LONGER = "give it more time: lifetime trace --deadline 120"


@dataclass(frozen=True)
class Seen:
    """`members` are the storages of each survivor, by its fingerprint."""

    survivors: tuple[Survivor, ...] = ()
    gaps: tuple[Gap, ...] = ()
    members: Mapping[str, tuple[StorageId, ...]] = field(default_factory=dict)

    @property
    def failure(self) -> CaptureError | None:
        """What is to be said where nothing was seen because the heap could not be looked at."""
        why = next((gap.why for gap in self.gaps if gap.where == "capture"), None)
        if why is None or self.survivors:
            return None
        return CaptureError(f"the heap could not be looked at: {why}", LONGER if DEADLINE in why else "lifetime doctor")


def by_site(members: Mapping[str, Iterable[StorageId]], sites: Mapping[StorageId, Iterable[str]]) -> dict[str, list[str]]:
    """The fingerprints of the survivors that each site's leaves are part of. `sites` gives the sites of a storage."""
    found: dict[str, list[str]] = {}
    for fingerprint, held in members.items():
        for key in sorted({key for storage in held for key in sites.get(storage, ())}):
            found.setdefault(key, []).append(fingerprint)
    return found

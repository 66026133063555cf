"""What a renderer is given: a report, and what is to be said beside each survivor (new since, on which ranks)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lifetime.heap.model import Report, Survivor


@dataclass(frozen=True)
class Mark:
    """`word` is one word for a badge, `text` the sentence."""

    word: str
    text: str
    gone: bool = False
    """It is no part of the report itself: an older one had it."""


@dataclass(frozen=True)
class View:
    """`marks` by fingerprint; `title` is empty for a plain report, `notes` are sentences about the whole."""

    report: Report
    marks: Mapping[str, Mark] = field(default_factory=dict)
    title: str = ""
    notes: tuple[str, ...] = ()
    parts: tuple[Report, ...] = ()
    """The reports of the ranks, where `report` is all of them merged."""

    @property
    def alive(self) -> tuple[Survivor, ...]:
        return tuple(s for s in self.report.survivors if not self._is_gone(s))

    def _is_gone(self, survivor: Survivor) -> bool:
        mark = self.mark(survivor)
        return mark is not None and mark.gone

    def mark(self, survivor: Survivor) -> Mark | None:
        return self.marks.get(survivor.fingerprint)

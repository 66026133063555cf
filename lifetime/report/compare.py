"""What changed between two reports: what is gone, what is new, what grew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lifetime.heap.model import Report, Survivor
from lifetime.report.view import Mark, View
from lifetime.units import bytes_text, plural

NEW, GREW, SHRANK, SAME, GONE = "new", "grew", "shrank", "same", "gone"
ORDER = (NEW, GREW, SHRANK, SAME, GONE)
"""As they are shown: what a reviewer must look at first."""


@dataclass(frozen=True)
class Change:
    """`survivor` is the newer one; the older one where it is gone."""

    word: str
    survivor: Survivor
    text: str


def changes(old: Report, new: Report) -> tuple[Change, ...]:
    """One change a fingerprint. Runs of different length are told apart by bytes a step where the leak grows."""
    before = {s.fingerprint: s for s in old.survivors}
    after = {s.fingerprint: s for s in new.survivors}
    found = [_change(before.get(s.fingerprint), s) for s in new.survivors]
    found += [_gone(s) for s in old.survivors if s.fingerprint not in after]
    return tuple(sorted(found, key=lambda change: ORDER.index(change.word)))


def _change(old: Survivor | None, new: Survivor) -> Change:
    if old is None:
        return Change(NEW, new, f"new: {bytes_text(new.bytes)}")
    unit = " a step" if _slope(old) and _slope(new) else ""
    before, after = (_slope(old), _slope(new)) if unit else (old.bytes, new.bytes)
    moved = f"{bytes_text(before)}{unit} before, {bytes_text(after)}{unit} now"
    if old.verdict is not new.verdict:
        moved += f"; was {old.verdict.value}"
    if before == after:
        return Change(SAME, new, f"as before: {bytes_text(after)}{unit}" + moved.partition(unit + " now")[2])
    word = GREW if after > before else SHRANK
    return Change(word, new, f"{word}: {moved}")


def _slope(survivor: Survivor) -> int:
    return survivor.bytes_per_step


def _gone(old: Survivor) -> Change:
    return Change(GONE, old, f"gone: was {bytes_text(old.bytes)}")


def compared_views(old: View, new: View) -> View:
    """The same of two views: what was said of either is said again."""
    view = compared(old.report, new.report)
    said = [f"{name}: {note}" for name, each in (("Older", old), ("Newer", new)) for note in each.notes]
    return replace(view, notes=(*view.notes, *said))


def compared(old: Report, new: Report) -> View:
    """A view of the newer report with the older one's lost survivors behind its own, each marked."""
    found = changes(old, new)
    marks = {change.survivor.fingerprint: Mark(change.word, change.text, change.word == GONE) for change in found}
    report = replace(new, survivors=tuple(change.survivor for change in found))
    counts = [(sum(c.word == word for c in found), word) for word in ORDER]
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing on either side"
    held = f"{bytes_text(_held(old))} held before, {bytes_text(_held(new))} now"
    return View(report, marks, f"lifetime: compared with the older report: {told}; {held}", _notes(old, new))


def _held(report: Report) -> int:
    return sum(s.bytes for s in report.survivors)


def regressions(old: Report, new: Report) -> Report:
    """The newer report with only those survivors that are new or grew: the older one is the baseline."""
    worse = {c.survivor.fingerprint for c in changes(old, new) if c.word in (NEW, GREW)}
    known = {(site.path, site.line, site.code) for site in old.sites if site.verdict.value == "confirmed"}
    sites = tuple(site for site in new.sites if (site.path, site.line, site.code) not in known)
    return replace(new, survivors=tuple(s for s in new.survivors if s.fingerprint in worse), sites=sites)


def _notes(old: Report, new: Report) -> tuple[str, ...]:
    """Why the two may not be comparable."""
    notes = []
    for what, before, now in (
        ("steps", plural(len(old.steps), "step"), plural(len(new.steps), "step")),
        ("torch", old.environment.torch, new.environment.torch),
        ("device", old.environment.device, new.environment.device),
        ("command", " ".join(old.environment.command), " ".join(new.environment.command)),
    ):
        if before != now:
            notes.append(f"The {what} differ{'' if what == 'steps' else 's'}: {before} before, {now} now.")
    return tuple(notes)

"""One report a rank, merged: equal fingerprints fall together, ranks that differ are named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lifetime.errors import ReportError
from lifetime.heap.model import Gap, Report, Site, SiteVerdict, Survivor, Verdict
from lifetime.report.view import Mark, View
from lifetime.units import bytes_text, plural

_WORST = {verdict: position for position, verdict in enumerate(Verdict)}
_SITE_WORST = {verdict: position for position, verdict in enumerate(SiteVerdict)}
OUTLIER = 1.5
"""Bytes on a rank above this many times the median of all ranks are worth a word."""


def merged(reports: Sequence[Report]) -> View:
    """All ranks in one view. Bytes are of the rank that holds most; the mark says on which ranks the leak was seen.

    Raises:
        ReportError: no report, or two of the same rank.
    """
    ranks = sorted(reports, key=lambda report: report.environment.rank)
    numbers = [report.environment.rank for report in ranks]
    if not ranks:
        raise ReportError("no reports to merge")
    twice = [rank for rank, count in Counter(numbers).items() if count > 1]
    if twice:
        raise ReportError(f"two reports of rank {twice[0]}", "a folder holds the reports of one run")
    groups = _by_fingerprint(ranks)
    survivors = sorted((_worst(group) for group in groups.values()), key=lambda s: (_WORST[s.verdict], -s.bytes, s.fingerprint))
    marks = {fingerprint: _mark(group, numbers) for fingerprint, group in groups.items()}
    fullest = max(ranks, key=lambda report: max((step.live_bytes for step in report.steps), default=0))
    report = replace(fullest, survivors=tuple(survivors), sites=_sites(ranks), gaps=_gaps(ranks))
    return View(report, marks, notes=tuple(_notes(ranks, fullest.environment.rank)), parts=tuple(ranks))


Group = dict[int, Survivor]


def _by_fingerprint(ranks: Sequence[Report]) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for report in ranks:
        for survivor in report.survivors:
            groups.setdefault(survivor.fingerprint, {})[report.environment.rank] = survivor
    return groups


def _worst(group: Group) -> Survivor:
    """The member of the rank that holds most, with the worst verdict of any rank."""
    verdict = min((s.verdict for s in group.values()), key=_WORST.__getitem__)
    most = max(group.values(), key=lambda s: s.bytes)
    return most if most.verdict is verdict else replace(most, verdict=verdict)


def _mark(group: Group, numbers: Sequence[int]) -> Mark:
    total = sum(s.bytes for s in group.values())
    if len(group) == len(numbers):
        where, word = f"on all {len(numbers)} ranks", "all ranks"
    elif len(group) * 2 > len(numbers):
        where = f"on {len(group)} of {len(numbers)} ranks, not on {_ranges(sorted(set(numbers) - group.keys()))}"
        word = f"{len(group)}/{len(numbers)} ranks"
    else:
        where, word = f"only on {_ranges(sorted(group))}", f"{len(group)}/{len(numbers)} ranks"
    return Mark(word, f"{where}; {bytes_text(total)} together{_heaviest(group)}")


def _heaviest(group: Group) -> str:
    sizes = sorted(s.bytes for s in group.values())
    median = sizes[(len(sizes) - 1) // 2]
    out = [rank for rank, s in sorted(group.items()) if s.bytes > OUTLIER * median]
    return f"; most on {_ranges(out)}: {bytes_text(sizes[-1])}, median {bytes_text(median)}" if out else ""


def _ranges(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 7`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    told = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    shown = ", ".join(told[:12]) + (f" and {len(told) - 12} more" if len(told) > 12 else "")
    return f"rank{'' if len(ranks) == 1 else 's'} {shown}"


def _sites(ranks: Sequence[Report]) -> tuple[Site, ...]:
    """One row a site: hits of all ranks, the worst verdict."""
    found: dict[tuple[str, str, int], Site] = {}
    for site in (site for report in ranks for site in report.sites):
        key = (site.code, site.path, site.line)
        found[key] = _both(found[key], site) if key in found else site
    return tuple(found.values())


def _both(one: Site, other: Site) -> Site:
    worst = min(one, other, key=lambda site: _SITE_WORST[site.verdict])
    return replace(
        worst,
        hits=one.hits + other.hits,
        captured_hits=one.captured_hits + other.captured_hits,
        survivors=tuple(dict.fromkeys((*one.survivors, *other.survivors))),
        bytes_per_step=max(one.bytes_per_step, other.bytes_per_step),
        outlived_call_bytes=max(one.outlived_call_bytes, other.outlived_call_bytes),
        readers=tuple(dict.fromkeys((*one.readers, *other.readers))),
    )


def _gaps(ranks: Sequence[Report]) -> tuple[Gap, ...]:
    """Each gap once; what only some ranks could not see says which."""
    seen: dict[Gap, list[int]] = {}
    for report in ranks:
        for gap in dict.fromkeys(report.gaps):
            seen.setdefault(gap, []).append(report.environment.rank)
    return tuple(
        gap if len(where) == len(ranks) else Gap(f"{gap.where} ({_ranges(where)})", gap.why) for gap, where in seen.items()
    )


def _notes(ranks: Sequence[Report], fullest: int) -> list[str]:
    first = ranks[0].environment
    notes = [f"{plural(len(ranks), 'rank')} merged; bytes are those of the rank that holds most, steps those of rank {fullest}."]
    missing = sorted(set(range(first.world_size)) - {report.environment.rank for report in ranks})
    if missing:
        notes.append(f"No report of {_ranges(missing)}: killed, or still running.")
    counts = Counter(len(report.steps) for report in ranks)
    usual = counts.most_common(1)[0][0]
    odd = [report.environment.rank for report in ranks if len(report.steps) != usual]
    if odd:
        notes.append(f"Another number of steps than {usual} on {_ranges(odd)}.")
    return notes

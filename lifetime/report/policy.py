"""Which reports `--fail-on` names."""

from __future__ import annotations

from lifetime.heap.model import Report, SiteVerdict, Verdict

FAIL_ON = ("growing", "confirmed", "never")
FAILING = {Verdict.GROWING, Verdict.UNTIL_GC}


def fails(report: Report, fail_on: str) -> bool:
    """`growing`: a survivor that grows or waits for gc; `confirmed`: that or a confirmed site. Known holders never fail."""
    if fail_on == "never":
        return False
    if fail_on == "confirmed" and any(site.verdict is SiteVerdict.CONFIRMED for site in report.sites):
        return True
    return any(survivor.verdict in FAILING and survivor.known is None for survivor in report.survivors)

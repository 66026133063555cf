"""What a run showed, joined to what lint suspects: confirmed becomes an error, refuted is hidden, comments are checked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from lifetime.errors import LifetimeError, ReportError
from lifetime.heap.model import Report, RootKind, Site, SiteVerdict, Survivor
from lifetime.linter import loader
from lifetime.linter.context import context_hash, function_named, named_holder, release_of
from lifetime.linter.edits import LINE
from lifetime.linter.model import Finding, Severity, Span
from lifetime.linter.module import Module
from lifetime.linter.result import LintResult, Problem
from lifetime.report.clean import one_line
from lifetime.report.records import read
from lifetime.units import bytes_text

COMMENT_CODE, COMMENT_NAME = "LT003", "unnamed-holder"
REFUTED = "refuted by the report"
UNROOTED = (RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE, RootKind.NATIVE)


def join(result: LintResult, file: str, paths: Sequence[str] = (".",)) -> LintResult:
    """`result` in the light of the report in `file`; comments are checked in the sources under `paths`.

    A site whose code has changed since the run is a problem (exit code 2): its evidence is about something else.

    Raises:
        ReportError: the report cannot be read.
    """
    if os.path.exists(file) and not os.path.isfile(file):  # a pipe would wait for somebody to write
        raise ReportError(f"cannot read {file}: is not a regular file")
    report = read(file)
    sites = {(os.path.realpath(site.path), site.code, site.line): site for site in report.sites}
    stale = {site for site in report.sites if _in_scope(site.path, paths) and not _is_current(site)}
    kept: list[Finding] = []
    suppressed = Counter(result.suppressed)
    for finding in result.findings:
        site = sites.get((os.path.realpath(finding.path), finding.code, finding.span.start_line))
        if site is None or site in stale or site.verdict is SiteVerdict.NOT_REACHED:
            kept.append(finding)
        elif site.verdict is SiteVerdict.REFUTED:
            suppressed[REFUTED] += 1
        else:
            kept.append(_confirmed(finding, site, report))
    comments = [s for s in report.sites if s.code == COMMENT_CODE and s not in stale and _in_scope(s.path, paths)]
    kept += [finding for site in comments for finding in _about_comment(site, report)]
    ordered = sorted(kept, key=lambda f: (f.path, f.span, f.code))
    problems = (*result.problems, *(_problem(site) for site in sorted(stale, key=lambda s: (s.path, s.line))))
    return result._replace(findings=tuple(ordered), problems=problems, suppressed=dict(suppressed))


def _confirmed(finding: Finding, site: Site, report: Report) -> Finding:
    held = [s for s in report.survivors if s.fingerprint in site.survivors]
    by = f", held by {_holder(held[0])}" if held else ""
    observed = f"observed: {bytes_text(site.bytes_per_step)} a step over {site.hits} calls{by}"
    trace = {
        "verdict": site.verdict.value,
        "hits": site.hits,
        "bytes_per_step": site.bytes_per_step,
        "holders": list(site.survivors),
    }
    evidence = {**finding.evidence, "trace": trace}
    return replace(finding, severity=Severity.ERROR, message=f"{finding.message} ({observed})", evidence=evidence)


def _about_comment(site: Site, report: Report) -> list[Finding]:
    """What the run says of the holder that the comment above a release names; nothing where it still holds."""
    text = loader.decode(loader.read(site.path), site.path).source
    named = _named_holder(text, site)
    if named is None or site.verdict is SiteVerdict.NOT_REACHED:
        return []
    line, fingerprint = named
    holders = {s.fingerprint: s for s in report.survivors if s.fingerprint in site.survivors}
    if fingerprint in holders:
        return []
    if holders:
        now = max(holders.values(), key=lambda s: s.bytes)
        message = f"the comment names holder {fingerprint}, but in the run {_holder(now)} holds these leaves ({now.fingerprint})"
    else:
        message = f"the comment names holder {fingerprint}, but in the run nothing holds these leaves: the release may be dead code"
    width = len(LINE.findall(text)[line - 1].rstrip("\r\n"))
    span = Span(line, 0, line, width)
    evidence = {"named": fingerprint, "holders": sorted(holders)}
    identity = sha256(f"{COMMENT_CODE} {site.function} {fingerprint} {sorted(holders)}".encode()).hexdigest()[:16]
    severity = Severity.WARNING
    function = one_line(site.function) if site.function else None
    return [Finding(COMMENT_CODE, COMMENT_NAME, severity, site.path, span, function, message, identity, None, evidence)]


def _named_holder(text: str, site: Site) -> tuple[int, str] | None:
    """Line and fingerprint of the holder that the comment above the release of the site's function names."""
    module = Module(site.path, text, loader.parse(text, site.path), site.path)
    function = function_named(module, site.function or "")
    release = release_of(module, function) if function else None
    if release is None:
        return None
    return named_holder(module, release)


def _holder(survivor: Survivor) -> str:
    """The blamed reference, and the root that it hangs on where there is one: `list[4] (under train.HELD)`."""
    root = survivor.chain.root
    link = survivor.chain.links[survivor.cut.link] if survivor.chain.links else None
    if link is None:
        return one_line(root.name)
    blamed = one_line(f"{link.holder}{link.reference}")
    return blamed if root.kind in UNROOTED or root.name.endswith(link.reference) else f"{blamed} (under {one_line(root.name)})"


def _is_current(site: Site) -> bool:
    """The code that leads up to the site is what was traced."""
    if not site.context:
        return True
    try:
        text = loader.decode(loader.read(site.path), site.path).source
        module = Module(site.path, text, loader.parse(text, site.path), site.path)
    except LifetimeError:
        return False
    function = function_named(module, site.function or "")
    return function is not None and context_hash(function) == site.context


def _problem(site: Site) -> Problem:
    what = one_line(site.function or "the module")
    return Problem(site.path, f"{what} is not the code that the report is about: trace again", site.line)


def _in_scope(path: str, paths: Sequence[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(top)) for top in paths)

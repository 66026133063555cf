"""The report as text, in LeakCanary's layout: a summary first, the worst leak first, suspect references underlined.

Source: LeakCanary, shark/LeakTrace.kt (prefixes, the zero-width space that keeps chat clients from trimming the last node).
"""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.heap.model import Chain, Gap, Leaking, Link, Owners, Proof, Report, RootKind, Site, Survivor, Verdict
from lifetime.units import bytes_text, plural

LAST = "\u200b     "
ROOTS = {
    RootKind.REFERENCE_CYCLE: "none, a reference cycle that gc would free",
    RootKind.NATIVE_CYCLE: "none, a cycle that only C++ closes: gc never frees it",
}


def report_text(report: Report, most: int = 10) -> Iterator[str]:
    """The lines of the whole report: summary, sites, at most `most` survivors, gaps."""
    yield summary(report)
    for site in report.sites:
        yield f"  site {site_text(site)}"
    for number, survivor in enumerate(report.survivors[:most], 1):
        yield ""
        yield from survivor_text(survivor, number, len(report.survivors))
    if len(report.survivors) > most:
        yield ""
        yield f"+ {len(report.survivors) - most} more"
    yield from _gaps("gaps", report.gaps)


def summary(report: Report) -> str:
    """One line: how many survivors of which kind, their bytes, and over how many steps they were seen."""
    kinds = []
    for verdict in Verdict:
        group = [s for s in report.survivors if s.verdict is verdict]
        if group:
            total, a_step = sum(s.bytes for s in group), sum(s.bytes_per_step for s in group)
            slope = "" if verdict is Verdict.LINGERING else f", +{bytes_text(a_step)} a step"
            kinds.append(f"{len(group)} {verdict.value} ({bytes_text(total)}{slope})")
    what = f"{plural(len(report.survivors), 'survivor')}: {', '.join(kinds)}" if kinds else "nothing outlives its step"
    where = f"{plural(len(report.steps), 'step')} seen on {report.environment.device}"
    return f"lifetime: {what}; {where}, gc {report.environment.gc.mode}"


def site_text(site: Site) -> str:
    captured = f", {site.captured_hits} under capture" if site.captured_hits else ""
    held = f", {bytes_text(site.bytes_per_step)} a step" if site.bytes_per_step else ""
    name = f" in {site.function}" if site.function else ""
    return f"{site.path}:{site.line}: {site.code} {site.verdict.value}{name}: {plural(site.hits, 'hit')}{captured}{held}"


def survivor_text(survivor: Survivor, number: int = 1, total: int = 1) -> Iterator[str]:
    yield f"{number} of {total}  {survivor.verdict.value.upper()}  {_amount(survivor)}"
    if survivor.count > 1:
        yield f"Displaying only 1 holder chain out of {survivor.count} with the same leak fingerprint"
    yield f"Leak fingerprint: {survivor.fingerprint}"
    if survivor.known:
        yield f"Known holder: {survivor.known.description} ({survivor.known.reference}; matched {survivor.known.pattern})"
    yield from chain_text(survivor)
    yield f"  Cut: {cut_text(survivor)}"
    yield f"  Owners: {owners_text(survivor.owners)}"
    if survivor.chain.expression:
        yield f"  In Python: {survivor.chain.expression}"
    if survivor.hint:
        yield f"  Hint: {survivor.hint}"
    yield from _gaps("  gaps", survivor.gaps)


def _amount(survivor: Survivor) -> str:
    slope = "" if survivor.verdict is Verdict.LINGERING else f", +{bytes_text(survivor.bytes_per_step)} a step"
    return f"{bytes_text(survivor.bytes)} in {plural(survivor.count, 'storage')}{slope}"


def chain_text(survivor: Survivor) -> Iterator[str]:
    """The holder chain, a root on top, the tensor below."""
    chain = survivor.chain
    yield "┬───"
    yield f"│ GC Root: {root_text(chain)}"
    yield "│"
    suspects = suspect_links(chain)
    for index, link in enumerate(chain.links):
        yield f"├─ {link.holder_type if link.holder_type.endswith(link.holder) else f'{link.holder} ({link.holder_type})'}"
        yield f"│    Leaking: {_status(link)}"
        if link.where:
            yield f"│    at {link.where}"
        if chain.cycle == index:
            yield "│    ↺ the cycle closes here"
        yield f"│    ↓ {link.reference}"
        if index in suspects:
            yield f"│      {'~' * len(link.reference)}"
    yield from _tensor_lines(survivor)


def _tensor_lines(survivor: Survivor) -> Iterator[str]:
    tensor = survivor.tensor
    shape = ", ".join(map(str, tensor.shape))
    yield f"╰→ {tensor.label} [{shape}] {tensor.dtype} {tensor.device} {bytes_text(tensor.storage_bytes)}"
    yield f"{LAST}Leaking: YES (it outlived its step)"
    if tensor.created_at:
        yield f"{LAST}created at {tensor.created_at}"


def root_text(chain: Chain) -> str:
    if chain.root.kind in ROOTS:
        return ROOTS[chain.root.kind]
    where = f" ({chain.root.where})" if chain.root.where else ""
    return f"{chain.root.kind.value} {chain.root.name}{where}"


def suspect_links(chain: Chain) -> frozenset[int]:
    """Indexes of the references between the last holder that is not leaking and the first that is."""
    status = [link.leaking for link in chain.links]
    first = max((k for k, s in enumerate(status) if s is Leaking.NO), default=0)
    last = next((k for k, s in enumerate(status) if s is Leaking.YES), len(status))
    return frozenset(range(first, last))


def _status(link: Link) -> str:
    return link.leaking.value.upper() + (f" ({link.reason})" if link.reason else "")


def cut_text(survivor: Survivor) -> str:
    """The blamed reference, what cutting it frees, and whether that was shown."""
    cut = survivor.cut
    shown = "frees" if cut.proof is Proof.PROVED else "would free" if cut.proof is Proof.NOT_TRIED else "does not free all: freed"
    why = f": {cut.why}" if cut.why else ""
    return f"{cut.reference} {shown} {bytes_text(cut.frees_bytes)} ({cut.proof.value}{why})"


def owners_text(owners: Owners | None) -> str:
    """Owners named against owners counted, a layer each; says how many are missing."""
    if owners is None:
        return "unknown"
    layers = (("wrapper", owners.wrapper), ("tensor", owners.tensor), ("storage", owners.storage))
    missing = [
        f"{layer.counted - layer.named} of {layer.counted} in the {name}" for name, layer in layers if layer.named < layer.counted
    ]
    counts = ", ".join(f"{name} {layer.named} of {layer.counted}" for name, layer in layers if layer.counted)
    return f"unknown C++ owner: {', '.join(missing)}" if missing else f"all named ({counts})"


def _gaps(title: str, gaps: tuple[Gap, ...]) -> Iterator[str]:
    if gaps:
        yield f"{title}: what could not be seen"
        yield from (f"  {gap.where}: {gap.why}" for gap in gaps)

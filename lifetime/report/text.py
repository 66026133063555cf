"""The report as text, in LeakCanary's layout: a summary first, the worst leak first, suspect references underlined.

Source: LeakCanary, shark/LeakTrace.kt (prefixes, the zero-width space that keeps chat clients from trimming the last node).
"""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.heap.model import Gap, Link, Proof, Report, Survivor
from lifetime.report.clean import columns, one_line
from lifetime.report.fold import Stretch, gaps_alike, ring, stretches
from lifetime.report.view import Mark, View
from lifetime.report.words import (
    also_text,
    amount,
    cut_text,
    holder_text,
    own_variables,
    owners_text,
    reference_text,
    root_text,
    shape_text,
    site_text,
    size_text,
    stack_text,
    status_text,
    summary,
    suspect_links,
    tensor_status,
    told_sites,
    word,
)
from lifetime.units import bytes_text, plural

LAST = "\u200b     "
MOST = 10
MOST_SITES = 20


def report_text(report: Report, most: int = MOST) -> Iterator[str]:
    """The lines of the whole report: summary, sites, at most `most` survivors, gaps."""
    return view_text(View(report), most)


def view_text(view: View, most: int = MOST) -> Iterator[str]:
    """The same with what is to be said beside each survivor."""
    report = view.report
    yield view.title or summary(report)
    yield from (f"  {one_line(note, 2000)}" for note in view.notes)
    yield from _sites(report)
    for number, survivor in enumerate(report.survivors[:most], 1):
        yield ""
        variables = own_variables(survivor)
        if variables is not None:
            yield _own_variables(survivor, variables, number, len(report.survivors), view.mark(survivor))
            continue
        yield from survivor_text(survivor, number, len(report.survivors), view.mark(survivor))
        yield from _sites_of(survivor, report)
    rest = report.survivors[most:]
    if rest:
        yield ""
        yield f"+ {len(rest)} more ({bytes_text(sum(s.bytes for s in rest))})"
    yield from _gaps("gaps", report.gaps)


def _own_variables(survivor: Survivor, variables: str, number: int, total: int, mark: Mark | None) -> str:
    """What only a loop's variables hold, in one line."""
    name = one_line(survivor.fingerprint, 40) + (f", {one_line(mark.text)}" if mark else "")
    told = f"own variables of {variables}; rebound by the next step ({name})"
    return f"{number} of {total}  {word(survivor, mark).upper()}  {bytes_text(survivor.bytes)}: {told}"


def _sites_of(survivor: Survivor, report: Report) -> Iterator[str]:
    """The lines of the sources that harvested these tensors, as lint found them."""
    found = [f"{one_line(s.path)}:{s.line} ({one_line(s.code, 20)})" for s in report.sites if survivor.fingerprint in s.survivors]
    if found:
        yield f"  Sites: {', '.join(found[:5])}" + (f" and {len(found) - 5} more" if len(found) > 5 else "")


def _sites(report: Report) -> Iterator[str]:
    told, unreached = told_sites(report)
    yield from (f"  site {site_text(site)}" for site in told[:MOST_SITES])
    if len(told) > MOST_SITES:
        yield f"  + {plural(len(told) - MOST_SITES, 'more site')}"
    if unreached and told:
        yield f"  + {plural(unreached, 'site')} in libraries, not reached"


def view_plain(view: View) -> str:
    """The view as a file of its own."""
    return "\n".join(view_text(view)) + "\n"


def survivor_text(survivor: Survivor, number: int = 1, total: int = 1, mark: Mark | None = None) -> Iterator[str]:
    yield f"{number} of {total}  {word(survivor, mark).upper()}  {amount(survivor)}"
    if survivor.count > 1:
        yield f"Displaying only 1 holder chain out of {survivor.count} with the same leak fingerprint"
    yield f"Leak fingerprint: {one_line(survivor.fingerprint, 40)}" + (f" ({one_line(mark.text)})" if mark else "")
    if survivor.known:
        known = survivor.known
        described = f"{known.description} ({known.reference}; matched {known.pattern})"
        yield f"Known holder: {one_line(described, 400)}"
    yield from chain_text(survivor)
    yield f"  Cut: {cut_text(survivor)}"
    if survivor.judged or survivor.cut.proof is not Proof.DISPROVED:  # else told with the cut
        yield from (f"  Also held by: {other}" for other in also_text(survivor))
    yield f"  Owners: {owners_text(survivor.owners)}"
    if survivor.chain.expression:
        yield f"  In Python: {one_line(survivor.chain.expression, 400)}"
    if survivor.hint:
        yield f"  Hint: {one_line(survivor.hint, 600)}"
    yield from _gaps("  gaps", survivor.gaps)


def chain_text(survivor: Survivor) -> Iterator[str]:
    """The holder chain, a root on top, the tensor below; equal stretches are told once, with a count."""
    chain = survivor.chain
    yield "┬───"
    yield f"│ GC Root: {root_text(chain)}"
    yield "│"
    suspects = suspect_links(chain)
    closed = ring(chain)
    for stretch in stretches(survivor):
        for index in stretch.links:
            yield from _link_lines(chain.links[index], index in suspects, closed is not None and index == closed[1])
        yield from _repeated(stretch)
    yield from _tensor_lines(survivor)
    if closed and closed[0] == len(chain.links):
        yield f"{LAST}↺ the same as above"


def _link_lines(link: Link, suspect: bool, closes: bool) -> Iterator[str]:
    reference = reference_text(link)
    yield f"├─ {holder_text(link)}"
    yield f"│    Leaking: {status_text(link)}"
    if link.where:
        yield f"│    at {one_line(link.where)}"
    if closes:
        yield "│    ↺ the cycle closes here"
    yield f"│    ↓ {reference}"
    if suspect:
        yield f"│      {'~' * columns(reference)}"


def _repeated(stretch: Stretch) -> Iterator[str]:
    if stretch.left_out:
        yield f"├─ ⋮  {plural(stretch.left_out, 'more link')} left out"
    if stretch.times > 1:
        what = "the link" if len(stretch.links) == 1 else f"the {len(stretch.links)} links"
        again = plural(stretch.times - 1, "more time")
        yield f"├─ ⋮  {what} above, {again}"


def _tensor_lines(survivor: Survivor) -> Iterator[str]:
    tensor = survivor.tensor
    yield f"╰→ {one_line(tensor.label)} {shape_text(tensor)} {size_text(tensor)}"
    yield f"{LAST}Leaking: {tensor_status(survivor)}"
    if tensor.created_at:
        yield f"{LAST}created at {one_line(tensor.created_at)}"
    if tensor.address is not None:
        yield f"{LAST}address {tensor.address:#x}" + (", allocated by" if tensor.stack else "")
    yield from (f"{LAST}  {call}" for call in stack_text(tensor))


def _gaps(title: str, gaps: tuple[Gap, ...], most: int = 30) -> Iterator[str]:
    told = gaps_alike(gaps)
    if told:
        yield f"{title}: what could not be seen"
        yield from (f"  {one_line(gap.where)}: {one_line(gap.why, 400)}" for gap in told[:most])
    if len(told) > most:
        yield f"  + {len(told) - most} more"

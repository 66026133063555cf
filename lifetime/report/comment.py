"""The comment that a release deserves: what is released, who held it, why that is safe, and a fingerprint to check it by."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lifetime.heap.model import Chain, Environment, Link, RootKind, Site, Survivor
from lifetime.report.words import root_text
from lifetime.units import bytes_text, plural


@dataclass(frozen=True)
class Release:
    """What a comment speaks of. `leaves` is the expression that holds the leaves; `readers` counts later `.grad` reads that
    were looked at, `doubts` names those that may see these leaves."""

    site: Site
    survivor: Survivor
    environment: Environment
    leaves: str = "the leaves"
    readers: int = 0
    doubts: tuple[str, ...] = ()


def comment_lines(release: Release, width: int) -> list[str]:
    """The block, without indentation, every line at most `width` characters."""
    body: list[str] = []
    for text in _paragraph(release, held_by=True):
        body += textwrap.wrap(text, max(width - 2, 20), break_long_words=False, break_on_hyphens=False)
    for line in graph_lines(release.survivor.chain, release.survivor.cut.link):
        body += textwrap.wrap(line, max(width - 2, 20), initial_indent="  ", subsequent_indent=" " * 8, break_long_words=False)
    body += textwrap.wrap(_safety(release), max(width - 2, 20), break_long_words=False)
    return [f"# lifetime: holder {release.survivor.fingerprint}", *(f"# {line}" for line in body)]


def comment_markdown(release: Release, mermaid: str) -> str:
    """The same for a pull request, with the chain as a Mermaid graph."""
    lines = [f"### Release of `.grad` in `{release.site.function}`", "", *_paragraph(release, held_by=False), ""]
    lines += ["```mermaid", mermaid.strip(), "```", "", _safety(release)]
    lines += ["", f"Holder fingerprint `{release.survivor.fingerprint}`: a later `lifetime trace` tells whether it still holds."]
    return "\n".join(lines) + "\n"


def _paragraph(release: Release, held_by: bool) -> Iterator[str]:
    survivor, where = release.survivor, release.environment
    amount = f"{bytes_text(release.site.bytes_per_step or survivor.bytes_per_step or survivor.bytes)} a step"
    measured = f"torch {where.torch}, {where.device}"
    ending = ", held by" if held_by else "."
    yield f"The .grad of `{release.leaves}` outlived this backward: {amount} ({measured}){ending}"


def _safety(release: Release) -> str:
    if release.doubts:
        return f"May be read later: {', '.join(release.doubts)}."
    if release.readers:
        return f"Safe to release: of {plural(release.readers, 'later read')} of a .grad none sees these leaves."
    return "Safe to release: nothing reads these fields later."


def graph_lines(chain: Chain, cut: int) -> Iterator[str]:
    """The holder chain, one holder a line: `Class.attr`, the blamed one marked, equal neighbours folded."""
    cycle = chain.root.kind in (RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE)
    yield f"root: {root_text(chain)}" if not cycle else root_text(chain).removeprefix("none, ")
    for count, index, link in _runs(chain.links):
        times = f"  ({count} times)" if count > 1 else ""
        mark = "  <- cut here" if index <= cut < index + count else ""
        yield f"-> {link.holder}{link.reference}{times}{mark}"
    if chain.cycle is not None and chain.links:
        yield f"-> {chain.links[chain.cycle].holder}: the cycle closes"


def _runs(links: Sequence[Link]) -> Iterator[tuple[int, int, Link]]:
    """Neighbours that read the same, folded: how many, the index of the first, the link."""
    start = 0
    for index in range(1, len(links) + 1):
        if index == len(links) or _reads(links[index]) != _reads(links[start]):
            yield index - start, start, links[start]
            start = index


def _reads(link: Link) -> tuple[str, str]:
    return link.holder_type, re.sub(r"\[\d+\]", "[x]", link.reference)

"""The comment that a release deserves: what is released, who held it, why that is safe, and a fingerprint to check it by."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.heap.model import Environment, Link, Site, Survivor
from lifetime.report.clean import one_line
from lifetime.report.fold import stretches
from lifetime.report.words import CYCLES, root_text
from lifetime.units import bytes_text, plural

LONGEST_LINE = 400
ENDS = 6
"""Holders at either end of a chain that stays long after folding."""


@dataclass(frozen=True)
class Release:
    """What a comment speaks of. `leaves` is the expression that holds the leaves, if there is one; `readers` counts later `.grad`
    reads that were looked at, `doubts` names those that may see these leaves."""

    site: Site
    survivor: Survivor
    environment: Environment
    leaves: str = ""
    readers: int = 0
    doubts: tuple[str, ...] = ()


def comment_lines(release: Release, width: int) -> list[str]:
    """The block, without indentation, every line at most `width` characters."""
    body: list[str] = []
    for text in _paragraph(release, held_by=True):
        body += textwrap.wrap(text, max(width - 2, 20), break_long_words=False, break_on_hyphens=False)
    for line in graph_lines(release.survivor):
        body += textwrap.wrap(line, max(width - 2, 20), initial_indent="  ", subsequent_indent=" " * 8, break_long_words=False)
    body += textwrap.wrap(_safety(release), max(width - 2, 20), break_long_words=False)
    return [one_line(holder_line(release.survivor)), *(one_line(f"# {line}", LONGEST_LINE) for line in body)]


def holder_line(survivor: Survivor) -> str:
    """The line by which a later run finds the block, and the holder that it names."""
    return f"# lifetime: holder {survivor.fingerprint}"


def comment_markdown(release: Release, mermaid: str) -> str:
    """The same for a pull request, with the chain as a Mermaid graph."""
    function, safety = one_line(str(release.site.function), 120), one_line(_safety(release), 2000)
    lines = [f"### Release of `.grad` in `{function}`", "", *(one_line(text, 2000) for text in _paragraph(release, held_by=False))]
    lines += ["", "```mermaid", mermaid.strip(), "```", "", safety]
    lines += ["", f"Holder fingerprint `{release.survivor.fingerprint}`: a later `lifetime trace` tells whether it still holds."]
    return "\n".join(lines) + "\n"


def _paragraph(release: Release, held_by: bool) -> Iterator[str]:
    survivor, where = release.survivor, release.environment
    amount = f"{bytes_text(release.site.bytes_per_step or survivor.bytes_per_step or survivor.bytes)} a step"
    measured = f"torch {where.torch}, {where.device}"
    ending = ", held by" if held_by else "."
    leaves = f"`{release.leaves}`" if release.leaves else "the leaves"
    yield f"The .grad of {leaves} outlived this backward: {amount} ({measured}){ending}"


def _safety(release: Release) -> str:
    if release.doubts:
        return f"May be read later: {', '.join(release.doubts)}."
    if release.readers:
        return f"Safe to release: of {plural(release.readers, 'later read')} of a .grad none sees these leaves."
    return "Safe to release: nothing reads these fields later."


def graph_lines(survivor: Survivor) -> Iterator[str]:
    """The holder chain, one holder a line: `Class.attr`, the blamed one marked, equal stretches folded, a long middle left out."""
    chain = survivor.chain
    yield f"root: {root_text(chain)}" if chain.root.kind not in CYCLES else root_text(chain).removeprefix("none, ")
    for stretch in stretches(survivor, ENDS):
        lines = [_line(chain.links[index], index == survivor.cut.link) for index in stretch.links]
        if stretch.left_out:
            lines.append(f"-> ... {plural(stretch.left_out, 'more link')}")
        if stretch.times > 1:
            those = "" if len(lines) == 1 else f"these {len(lines)} lines "
            lines[-1] += f"  ({those}{stretch.times} times)"
        yield from lines
    if chain.cycle is not None and chain.links:
        yield f"-> {chain.links[chain.cycle].holder}: the cycle closes"


def _line(link: Link, is_cut: bool) -> str:
    return f"-> {link.holder}{link.reference}{'  <- cut here' if is_cut else ''}"

"""Markdown for a pull request or `$GITHUB_STEP_SUMMARY`: a table, the worst leaks as Mermaid, the chains folded away.

A comment on GitHub ends at 65 536 characters, so the parts are dropped from the back before that, and said to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lifetime import __version__
from lifetime.heap.model import Report, Survivor, Verdict
from lifetime.report.clean import middle_out, one_line
from lifetime.report.fold import gaps_alike
from lifetime.report.mermaid import picture_mermaid
from lifetime.report.picture import Picture, picture
from lifetime.report.text import survivor_text
from lifetime.report.view import View
from lifetime.report.words import blamed, command, freed_text, own_variables, setting, summary, told_sites, word
from lifetime.units import bytes_text, plural

LONGEST = 60_000
MOST_ROWS, MOST_GRAPHS, MOST_SITES = 50, 3, 20
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&$]")


def view_markdown(view: View) -> str:
    """The view in at most `LONGEST` characters."""
    parts = [_head(view), _table(view), _sites(view.report), *_graphs(view), *_chains(view), _gaps(view.report)]
    told, length = [], 0
    left_out = 0
    for part in parts:
        if length + len(part) > LONGEST:
            left_out += 1
        elif part:
            told.append(part)
            length += len(part) + 1
    if left_out:
        told.append("*Too long for one comment: the rest is in the report.*\n")
    return "\n".join([*told, f"<sub>lifetime {__version__}</sub>\n"])


def plain(text: str) -> str:
    """Foreign text that Markdown reads as nothing but text: no markup, no mention, no issue number."""
    marked = _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", one_line(text, 2000))
    return re.sub(r"@|#(?!\d+;)", lambda match: f"{match.group()}\u200b", marked)


def code(text: str) -> str:
    """A code span, in a table too: longer fences than any in the text, bars escaped."""
    clean = one_line(text, 400) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", clean)), default=0) + 1)
    pad = " " if "`" in clean else ""
    return f"{fence}{pad}{clean}{pad}{fence}".replace("|", "\\|")


def _fenced(text: str, language: str = "text") -> str:
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _head(view: View) -> str:
    title = (view.title or summary(view.report)).removeprefix("lifetime: ")
    run = command(view.report)
    lines = [f"### lifetime: {plain(title)}", ""]
    lines += [f"{code(run)}, {plain(setting(view.report))}" if run else plain(setting(view.report)), ""]
    return "\n".join([*lines, *(f"{plain(note)}\n" for note in view.notes)])


def _table(view: View) -> str:
    survivors = view.report.survivors
    if not survivors:
        return ""
    marked = any(view.mark(s) for s in survivors)
    rows = [
        "| | holder | bytes | a step | cut |" + (" |" if marked else ""),
        "|---|---|---:|---:|---|" + ("---|" if marked else ""),
    ]
    rows += [_row(view, survivor, marked) for survivor in survivors[:MOST_ROWS]]
    left = survivors[MOST_ROWS:]
    more = f"\n\n+ {len(left)} more, {bytes_text(sum(s.bytes for s in left))} together" if left else ""
    return "\n".join(rows) + more + "\n"


def _row(view: View, survivor: Survivor, marked: bool) -> str:
    mark = view.mark(survivor)
    known = " (known)" if survivor.known else ""
    own = " (own variables)" if own_variables(survivor) is not None else ""
    cells = [
        word(survivor, mark) + known + own,
        code(blamed(survivor)),
        bytes_text(survivor.bytes),
        bytes_text(survivor.bytes_per_step),
        f"{freed_text(survivor)}, {survivor.cut.proof.value}",
    ]
    return "| " + " | ".join([*cells, *([plain(mark.text) if mark else ""] if marked else [])]) + " |"


def _sites(report: Report) -> str:
    told, unreached = told_sites(report)
    if not told:
        return ""
    rows = ["| site | verdict | hits | a step |", "|---|---|---:|---:|"]
    for site in told[:MOST_SITES]:
        place = code(f"{site.code} {middle_out(site.path, 100)}:{site.line}")
        rows.append(f"| {place} | {site.verdict.value} | {site.hits:,} | {bytes_text(site.bytes_per_step)} |")
    left = len(told) - MOST_SITES
    more = f"\n\n+ {plural(left, 'more site')}" if left > 0 else ""
    libraries = f"\n\n+ {plural(unreached, 'site')} in libraries, not reached" if unreached else ""
    return "\n".join(rows) + more + libraries + "\n"


def _graphs(view: View) -> Iterator[str]:
    """The worst leaks, a graph each: side by side they would be too small to read. What only lingers is seen in its chain."""
    drawn = picture(view, MOST_GRAPHS).cards
    for card in [card for card in drawn if card.verdict is not Verdict.LINGERING] or drawn[:1]:
        yield _fenced(picture_mermaid(Picture(card.title, (card,), "")), "mermaid") + "\n"


def _chains(view: View) -> Iterator[str]:
    total = len(view.report.survivors)
    for number, survivor in enumerate(view.report.survivors[:MOST_ROWS], 1):
        if own_variables(survivor) is not None:
            continue  # its row says it all
        title = f"{number} of {total}, {word(survivor, view.mark(survivor))}: {plain(blamed(survivor))}"
        trace = "\n".join(survivor_text(survivor, number, total, view.mark(survivor)))
        yield f"<details><summary>{title}</summary>\n\n{_fenced(trace)}\n\n</details>\n"


def _gaps(report: Report) -> str:
    if not report.gaps:
        return ""
    lines = [f"- {plain(gap.where)}: {plain(gap.why)}" for gap in gaps_alike(report.gaps)[:30]]
    return "\n".join(["**What could not be seen**", "", *lines, ""])

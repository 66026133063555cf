"""One HTML page: self-contained, no network, a policy that lets nothing in; whole without JavaScript, pleasant with it.

Everything foreign is escaped. The policy admits the page's own style sheet and script by their hashes and nothing else, so
that even a name that got through unescaped could not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path

from lifetime import __version__
from lifetime.heap.model import Gap, Report, Verdict
from lifetime.report.chart import axis_start, steps_chart
from lifetime.report.clean import middle_out, one_line
from lifetime.report.fold import gaps_alike
from lifetime.report.html_leak import anchor, leak
from lifetime.report.picture import card
from lifetime.report.view import View
from lifetime.report.words import MEANING, blamed, command, headline, nothing, setting, summary, told_sites
from lifetime.units import bytes_text, plural

GRAPHS_UNTIL, LEAKS_UNTIL = 1_300_000, 1_800_000
"""Characters of the page after which leaks come without a graph, and after which they are only counted."""
NUMBER_HEAD = '<th class="number">allocated</th>'
OPEN_LEAKS, MOST_BARS, MOST_ROWS, MOST_MARKS = 5, 8, 200, 8


def view_html(view: View) -> str:
    """The page."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    title = view.title or summary(view.report)
    head = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="lifetime {__version__}">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style></head>",
        '<body><a class="skip" href="#leaks">Skip to the leaks</a>',
    ]
    body = [*_header(view), "<main>", *_overview(view), *_leaks(view), *_gaps(view.report.gaps), "</main>"]
    return "\n".join([*head, *body, *_footer(), f"<script>{script}</script>", "</body></html>", ""])


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _header(view: View) -> Iterator[str]:
    steps = f"{plural(len(view.report.steps), 'step')} seen"
    title = (view.title or headline(view.report)).removeprefix("lifetime: ")
    yield f"<header><h1>{escape(title[:1].upper() + title[1:])}</h1>"
    run = command(view.report)
    yield f"<p><code>{escape(run)}</code></p>" if run else ""
    yield f'<p class="quiet">{escape(setting(view.report))}; {steps}</p>'
    yield from (f"<p>{escape(one_line(note, 2000))}</p>" for note in view.notes)
    yield "</header>"


def _overview(view: View) -> Iterator[str]:
    report = view.report
    yield '<section aria-label="Overview">'
    yield from _tiles(view)
    yield '<div class="panels">'
    yield from _chart_panel(report)
    yield from _bars(view)
    yield "</div>"
    yield from _sites(report)
    yield "</section>"


def _tiles(view: View) -> Iterator[str]:
    yield '<ul class="tiles">'
    for verdict in Verdict:
        group = [s for s in view.alive if s.verdict is verdict]
        if group:
            total, a_step = sum(s.bytes for s in group), sum(s.bytes_per_step for s in group)
            slope = "" if verdict is Verdict.LINGERING else f", +{bytes_text(a_step)} a step"
            said = f'<span class="quiet">{bytes_text(total)}{slope}: {MEANING[verdict]}</span>'
            yield f'<li class="{verdict.value}"><strong>{len(group)} {verdict.value}</strong>{said}</li>'
    if not view.alive:
        steps = plural(len(view.report.steps), "step")
        yield f'<li><strong>No survivors</strong><span class="quiet">{escape(nothing(view.report))}; {steps} seen</span></li>'
    yield "</ul>"


def _chart_panel(report: Report) -> Iterator[str]:
    chart = steps_chart(report.steps)
    if not chart:
        return
    floor = any(step.allocated_bytes is not None for step in report.steps)
    legend = "solid: bytes of live storages; dashed: allocated on the device" if floor else "bytes of live storages"
    start = axis_start(report.steps)
    legend += f"; the axis begins at {bytes_text(start)}" if start else ""
    yield f'<div class="panel"><h2>At the end of each step</h2>{chart}<p class="quiet">{legend}</p>'
    table = "".join(_steps_table(report, floor))
    yield f'<details class="inner"><summary>As a table</summary><table>{table}</table></details></div>'


def _steps_table(report: Report, floor: bool) -> Iterator[str]:
    yield f'<tr><th>step</th><th class="number">live</th>{NUMBER_HEAD if floor else ""}</tr>'
    for step in report.steps[:MOST_ROWS]:
        held = "" if step.allocated_bytes is None else bytes_text(step.allocated_bytes)
        more = f'<td class="number">{held}</td>' if floor else ""
        yield f'<tr><td>{step.index}</td><td class="number">{bytes_text(step.live_bytes)}</td>{more}</tr>'
    left = len(report.steps) - MOST_ROWS
    if left > 0:
        yield f'<tr><td colspan="3">+ {left:,} more</td></tr>'


def _bars(view: View) -> Iterator[str]:
    survivors = sorted(view.alive, key=lambda s: -s.bytes)[:MOST_BARS]
    if not survivors:
        return
    most = max(survivors[0].bytes, 1)
    yield '<div class="panel"><h2>Bytes by holder</h2><ul class="bars">'
    for survivor in survivors:
        share = max(100 * survivor.bytes / most, 0.5)
        link = f'<a href="#{anchor(survivor)}"><code>{escape(blamed(survivor))}</code></a>'
        yield f'<li class="{survivor.verdict.value}"><div class="row">{link}<span>{bytes_text(survivor.bytes)}</span></div>'
        yield f'<svg aria-hidden="true"><rect width="{share:.1f}%" height="8" rx="2"/></svg></li>'
    left = len(view.alive) - len(survivors)
    yield "</ul>" + (f'<p class="quiet">+ {left} more</p>' if left else "") + "</div>"


def _sites(report: Report) -> Iterator[str]:
    told, unreached = told_sites(report)
    if not told:
        return
    yield '<div class="panel" id="sites"><h2>Sites that lint found</h2><div class="scroll"><table>'
    yield '<tr><th>verdict</th><th>site</th><th>function</th><th class="number">hits</th>'
    yield '<th class="number">captured</th><th class="number">a step</th></tr>'
    for site in told[:MOST_ROWS]:
        place = f"{escape(one_line(site.code, 20))} {escape(middle_out(site.path, 100))}:{site.line}"
        yield f"<tr><td><strong>{site.verdict.value}</strong></td><td><code>{place}</code></td>"
        yield f'<td><code>{escape(one_line(site.function or "", 80))}</code></td><td class="number">{site.hits:,}</td>'
        yield f'<td class="number">{site.captured_hits:,}</td><td class="number">{bytes_text(site.bytes_per_step)}</td></tr>'
    left = len(told) - MOST_ROWS
    yield "</table></div>" + (f'<p class="quiet">+ {left} more</p>' if left > 0 else "")
    yield (f'<p class="quiet">+ {plural(unreached, "site")} in libraries, not reached</p>' if unreached else "") + "</div>"


def _leaks(view: View) -> Iterator[str]:
    survivors = view.report.survivors
    yield '<section id="leaks" aria-label="Survivors">'
    if survivors:
        yield "<h2>Who holds them</h2>"
        yield from _controls(view)
    heaviest = max((max(s.bytes, s.tensor.storage_bytes) for s in survivors), default=1)
    written = 0
    for number, survivor in enumerate(survivors):
        graph = card(survivor, view.mark(survivor)) if written < GRAPHS_UNTIL else None
        text = leak(view, survivor, graph, heaviest, number < OPEN_LEAKS)
        written += len(text)
        yield text
        if written > LEAKS_UNTIL and number + 1 < len(survivors):
            yield f"<p>+ {len(survivors) - number - 1} more; they are in the report's .json.</p>"
            break
    yield "</section>"


def _controls(view: View) -> Iterator[str]:
    """Search, and a box for each verdict and each mark that there is."""
    survivors = view.report.survivors
    verdicts = [verdict.value for verdict in Verdict if any(s.verdict is verdict for s in survivors)]
    marks = list(dict.fromkeys(mark.word for s in survivors if (mark := view.mark(s))))
    yield '<div class="controls" role="search"><input type="search" id="search" aria-label="Search the leaks" '
    yield 'placeholder="Search holders, types, places ( / )"><span>'
    yield from (_checkbox("verdict", word) for word in verdicts)
    yield "</span><span>"
    yield from (_checkbox("mark", word) for word in marks[:MOST_MARKS])
    yield '</span><span id="count" class="quiet" role="status"></span><button type="button" id="all">Open all</button></div>'


def _checkbox(name: str, word: str) -> str:
    shown = escape(one_line(word, 30))
    return f'<label><input type="checkbox" name="{name}" value="{shown}" checked> {shown}</label> '


def _gaps(gaps: tuple[Gap, ...]) -> Iterator[str]:
    if gaps:
        yield '<section id="gaps"><h2>What could not be seen</h2><ul class="gaps">'
        for gap in gaps_alike(gaps)[:MOST_ROWS]:
            yield f"<li><strong>{escape(one_line(gap.where))}</strong>: {escape(one_line(gap.why, 400))}</li>"
        yield "</ul></section>"


def _footer() -> Iterator[str]:
    yield f'<footer>Written by lifetime {__version__}; graphs by its built-in layout. <span class="quiet">Keys: / search, '
    yield "j and k next and previous, + - 0 and arrows in a graph.</span></footer>"

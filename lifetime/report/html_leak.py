"""One leak on the page: its graph, what is known of it, the comment to copy, the text trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from lifetime.heap.model import Survivor
from lifetime.report.clean import middle_out, one_line
from lifetime.report.comment import graph_lines
from lifetime.report.layout import draw
from lifetime.report.picture import Card
from lifetime.report.text import chain_text
from lifetime.report.view import View
from lifetime.report.words import (
    also_text,
    amount,
    blamed,
    cut_text,
    own_variables,
    owners_text,
    root_text,
    shape_text,
    size_text,
    stack_text,
    word,
)
from lifetime.units import bytes_text

MOST_LINES = 60


def anchor(survivor: Survivor) -> str:
    """An id: whatever a hand-edited fingerprint holds, letters and digits come out."""
    return "leak-" + re.sub(r"[^0-9A-Za-z]+", "-", survivor.fingerprint[:40])


def leak(view: View, survivor: Survivor, card: Card | None, heaviest: int, is_open: bool) -> str:
    """The block; `card` is None where the page has no room for another graph."""
    verdict = survivor.verdict.value
    mark = view.mark(survivor)
    colour = "gone" if mark and mark.gone else verdict
    badge = f'<span class="badge {colour}">{word(survivor, mark)}</span>'
    if mark and not mark.gone:
        badge += f'<span class="badge">{escape(one_line(mark.word, 30))}</span>'
    if survivor.known:
        badge += '<span class="badge">known</span>'
    own = own_variables(survivor) is not None
    opened = " open" if is_open and not own else ""
    note = ' <span class="quiet">own variables, rebound by the next step</span>' if own else ""
    said = f' data-mark="{escape(one_line(mark.word, 30))}"' if mark else ""
    parts = [
        f'<details class="leak {colour}" id="{anchor(survivor)}" data-verdict="{verdict}"{said}{opened}>',
        f"<summary>{badge}<code>{escape(blamed(survivor))}</code> {amount(survivor)}{note}</summary>",
        f'<div class="columns{"" if card else " plain"}">',
        *(_figure(card, heaviest) if card else ()),
        "<div>",
        *_facts(view, survivor),
        *(() if own else _comment(view, survivor)),
        "</div></div>",
        *_trace(survivor),
        "</details>",
    ]
    return "".join(parts)


def _figure(card: Card, heaviest: int) -> Iterator[str]:
    drawing = draw(card, heaviest)
    box = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    yield '<figure><div class="canvas" tabindex="0" role="group" aria-label="Graph; plus, minus, zero and arrows zoom and move">'
    yield f'<svg class="graph" {box} role="img"><title>{escape(card.title)}</title><desc>{escape(card.alt)}</desc>'
    yield f'{drawing.markup}</svg></div><div class="zoom">'
    for key, name, label in (("+", "+", "Zoom in"), ("-", "&minus;", "Zoom out"), ("0", "Fit", "Show all")):
        yield f'<button type="button" data-key="{key}" aria-label="{label}">{name}</button>'
    yield "</div></figure>"


def _facts(view: View, survivor: Survivor) -> Iterator[str]:
    yield "<dl>"
    for name, value in _rows(view, survivor):
        yield f"<dt>{name}</dt><dd>{value}</dd>"
    yield "</dl>"
    if survivor.gaps:
        items = "".join(f"<li>{escape(one_line(f'{g.where}: {g.why}', 500))}</li>" for g in survivor.gaps[:30])
        yield f'<h3>Not seen</h3><ul class="gaps">{items}</ul>'


def _rows(view: View, survivor: Survivor) -> Iterator[tuple[str, str]]:
    tensor, chain = survivor.tensor, survivor.chain
    mark = view.mark(survivor)
    if mark:
        yield "Note", escape(one_line(mark.text, 300))
    yield "Cut", f"<code>{escape(cut_text(survivor))}</code>"
    if survivor.cut.also:
        yield "Also", "<br>".join(f"<code>{escape(other)}</code>" for other in also_text(survivor))
    yield "Root", escape(root_text(chain))
    made = f", made at {middle_out(tensor.created_at, 120)}" if tensor.created_at else ""
    facts = f"{one_line(tensor.label)} {shape_text(tensor)}, {size_text(tensor)}{made}"
    yield "Tensor", escape(facts)
    if tensor.stack:
        yield "Allocated by", "<br>".join(f"<code>{escape(call)}</code>" for call in stack_text(tensor))
    if tensor.address is not None:
        yield "Address", f"<code>{tensor.address:#x}</code>"
    yield "Owners", escape(owners_text(survivor.owners))
    if chain.expression:
        yield "In Python", f"<code>{escape(one_line(chain.expression, 400))}</code>"
    if survivor.hint:
        yield "Hint", _prose(one_line(survivor.hint, 600))
    if survivor.known:
        known = survivor.known
        yield "Known", escape(one_line(f"{known.description} ({known.reference}; matched {known.pattern})", 500))
    sites = [s for s in view.report.sites if survivor.fingerprint in s.survivors]
    if sites:
        yield "Sites", ", ".join(f"<code>{escape(middle_out(s.path, 100))}:{s.line}</code>" for s in sites[:10])
    yield "Fingerprint", f"<code>{escape(one_line(survivor.fingerprint, 64))}</code>"


def _prose(text: str) -> str:
    """Text whose `code` is between backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _comment(view: View, survivor: Survivor) -> Iterator[str]:
    """Who holds it, to be copied above the line that lets go. Whether that is safe takes the sources, which a page has not."""
    where = view.report.environment
    held = f"{bytes_text(survivor.bytes_per_step or survivor.bytes)} a step (torch {where.torch}, {where.device}), held by"
    graph = (f"#   {line}" for line in graph_lines(survivor))
    lines = [f"# lifetime: holder {survivor.fingerprint}", f"# {held}", *graph]
    shown = "\n".join(one_line(line, 300) for line in lines[:MOST_LINES])
    yield f'<h3>Comment for the code</h3><div class="with-copy"><pre>{escape(shown)}</pre>'
    yield '<button type="button">Copy</button></div>'
    if any(survivor.fingerprint in site.survivors for site in view.report.sites):
        yield '<p class="quiet"><code>lifetime comment REPORT</code> reads the sources and adds whether the release is safe.</p>'


def _trace(survivor: Survivor) -> Iterator[str]:
    lines = "\n".join(chain_text(survivor))
    yield f'<details class="inner"><summary>Text trace</summary><pre>{escape(lines)}</pre></details>'

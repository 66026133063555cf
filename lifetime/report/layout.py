"""The built-in layout: pure Python, SVG only, cannot fail. The HTML page always uses it.

A holder chain is a column, so a column loses nothing: boxes from the root down, references in the middle of the lines, a
ring on the right. Colours come from the style sheet through class names; no element has a style of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from lifetime.report.clean import columns
from lifetime.report.picture import Arrow, ArrowKind, Box, BoxKind, Card, pen_width

LINE, PAD, MARGIN, CHAR, MONO = 15, 9, 14, 6.7, 6.7
PLAIN_GAP, LABEL_GAP, CUT_GAP, FOLD_GAP = 30, 46, 82, 14


@dataclass(frozen=True)
class Drawing:
    width: int
    height: int
    markup: str


def draw(card: Card, heaviest: int) -> Drawing:
    """One card without its frame. Widths are estimates for any sans-serif font; text that is wider still stays readable."""
    tops, height = _tops(card)
    ring = any(arrow.kind is ArrowKind.RING for arrow in card.arrows)
    half = max(_half_width(card) + MARGIN, 90)
    width = 2 * half + (26 if ring else 0)
    parts = [*_folds(card, tops, half), *(p for a in card.arrows for p in _arrow(card, a, tops, half, heaviest))]
    parts += [part for box, top in zip(card.boxes, tops, strict=True) for part in _box(box, top, half)]
    return Drawing(width, height, "".join(parts))


def _tops(card: Card) -> tuple[list[int], int]:
    """The upper edge of each box, and the height of all."""
    tops, y = [], MARGIN
    down = {arrow.source: arrow for arrow in card.arrows if arrow.kind is not ArrowKind.RING}
    for index, box in enumerate(card.boxes):
        tops.append(y)
        y += _height(box)
        if index in down:
            y += _gap(down[index]) + (0 if card.boxes[index + 1].fold == box.fold else FOLD_GAP)
    return tops, y + MARGIN


def _gap(arrow: Arrow) -> int:
    if arrow.kind is ArrowKind.CUT:
        return CUT_GAP
    return LABEL_GAP if arrow.label else PLAIN_GAP


def _height(box: Box) -> int:
    return 2 * PAD + LINE * (1 + len(box.notes)) - 3


def _box_width(box: Box) -> int:
    text = max(columns(box.title) * (CHAR + 0.5), *(columns(note) * CHAR for note in box.notes), 40.0)
    return round(text) + 2 * (PAD + 4)


def _half_width(card: Card) -> int:
    boxes = [_box_width(box) + (24 if box.fold is not None else 0) for box in card.boxes]
    labels = [round(max(columns(a.label) * MONO, columns(a.note) * CHAR)) + 24 for a in card.arrows]
    return max(*boxes, *labels, 0) // 2


def _box(box: Box, top: int, centre: int) -> Iterator[str]:
    width, height = _box_width(box), _height(box)
    radius = {BoxKind.ROOT: height // 2, BoxKind.AUTOGRAD: 9, BoxKind.MORE: 0}.get(box.kind, 2)
    yield f'<g class="box {box.kind.value}"><title>{text(box.tip or box.title)}</title>'
    yield f'<rect x="{centre - width // 2}" y="{top}" width="{width}" height="{height}" rx="{radius}"/>'
    for row, line in enumerate((box.title, *box.notes)):
        name = "note" if row else "name"
        yield f'<text class="{name}" x="{centre}" y="{top + PAD + 11 + row * LINE}">{text(line)}</text>'
    yield "</g>"


def _folds(card: Card, tops: list[int], centre: int) -> Iterator[str]:
    for fold, times in enumerate(card.folds):
        inside = [k for k, box in enumerate(card.boxes) if box.fold == fold]
        width = max(_box_width(card.boxes[k]) for k in inside) + 24
        top, bottom = tops[inside[0]] - 10, tops[inside[-1]] + _height(card.boxes[inside[-1]]) + 10
        x = centre - width // 2
        yield f'<g class="fold"><rect x="{x}" y="{top}" width="{width}" height="{bottom - top}" rx="8"/>'
        yield f'<text class="times" x="{x + width + 4}" y="{top + 12}">{times} x</text></g>'


def _arrow(card: Card, arrow: Arrow, tops: list[int], centre: int, heaviest: int) -> Iterator[str]:
    start = tops[arrow.source] + _height(card.boxes[arrow.source])
    end = tops[arrow.target]
    pen = f'stroke-width="{pen_width(arrow.weight, heaviest):.1f}"'
    yield f'<g class="arrow {arrow.kind.value}{"" if arrow.proved else " open"}"><title>{text(arrow.note or arrow.label)}</title>'
    if arrow.kind is ArrowKind.RING:
        yield _ring(card, arrow, tops, centre, pen)
    elif arrow.kind is ArrowKind.CUT:
        yield from _cut(arrow, start, end, centre, pen)
    elif arrow.label:
        middle = start + (end - start) // 2 - 2
        yield f'<path d="M{centre} {start}V{middle - 9}M{centre} {middle + 8}V{end - 6}" {pen}/>{_head(centre, end)}'
        yield f'<text class="mono" x="{centre}" y="{middle + 4}">{text(arrow.label)}</text>'
    else:
        yield f'<path d="M{centre} {start}V{end - 6}" {pen}/>{_head(centre, end)}'
    yield "</g>"


def _cut(arrow: Arrow, start: int, end: int, centre: int, pen: str) -> Iterator[str]:
    """The line ends at a bar, the pill says what the cut frees, below it the line goes on dashed."""
    half = round(max(columns(arrow.label) * MONO, columns(arrow.note) * CHAR)) // 2 + 11
    top = start + (end - start - 42) // 2 - 3
    bars = f"M{centre - 9} {top - 4}h18M{centre - 9} {top + 42}h18"
    yield f'<path d="M{centre} {start}V{top - 4}{bars}" {pen}/>'
    yield f'<path class="dash" d="M{centre} {top + 42}V{end - 6}" {pen}/>{_head(centre, end)}'
    yield f'<rect class="pill" x="{centre - half}" y="{top}" width="{2 * half}" height="38" rx="10"/>'
    yield f'<text class="mono" x="{centre}" y="{top + 16}">{text(arrow.label)}</text>'
    yield f'<text class="note" x="{centre}" y="{top + 31}">{text(arrow.note)}</text>'


def _ring(card: Card, arrow: Arrow, tops: list[int], centre: int, pen: str) -> str:
    """From the tensor's right side up to that of the box where the cycle closes, past everything between."""
    source, target = card.boxes[arrow.source], card.boxes[arrow.target]
    y, up = tops[arrow.source] + _height(source) // 2, tops[arrow.target] + _height(target) // 2
    x, end, out = centre + _box_width(source) // 2, centre + _box_width(target) // 2, 2 * centre + 8
    path = f"M{x} {y}H{out - 10}Q{out} {y} {out} {y - 10}V{up + 10}Q{out} {up} {out - 10} {up}H{end + 7}"
    return f'<path class="dash" d="{path}" {pen}/><path class="head" d="M{end} {up}l8 -4.5v9z"/>'


def _head(x: int, y: int) -> str:
    return f'<path class="head" d="M{x} {y}l-4.5 -8h9z"/>'


def text(content: str) -> str:
    """Escaped for XML; the picture's texts are printable already."""
    return escape(content)

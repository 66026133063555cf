"""The layout of last resort: each leak a column of boxes, root on top. Pure Python, SVG only, cannot fail.

Holder chains are nearly linear, so a column loses nothing but beauty.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from lifetime.heap.model import Report, Survivor
from lifetime.report.text import cut_text, root_text, summary, suspect_links
from lifetime.units import bytes_text

WIDTH, BOX, GAP, MARGIN, TOP = 360, 40, 44, 20, 60
STYLE = "font-family:Helvetica,Arial,sans-serif;font-size:12px"


def report_svg(report: Report, most: int = 12) -> str:
    """The first `most` survivors side by side."""
    columns = [_boxes(s) for s in report.survivors[:most]]
    height = TOP + MARGIN + max((len(boxes) for boxes in columns), default=1) * (BOX + GAP)
    width = MARGIN + max(len(columns), 2) * (WIDTH + MARGIN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{_text(summary(report))}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="24" style="{STYLE}">{_text(summary(report))}</text>',
    ]
    for k, survivor in enumerate(report.survivors[:most]):
        lines += _column(survivor, columns[k], MARGIN + k * (WIDTH + MARGIN))
    return "\n".join([*lines, "</svg>", ""])


def _boxes(survivor: Survivor) -> list[str]:
    tensor = survivor.tensor
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    last = f"{tensor.label} {shape} {tensor.dtype} {bytes_text(tensor.storage_bytes)}"
    return [root_text(survivor.chain), *(link.holder for link in survivor.chain.links), last]


def _column(survivor: Survivor, boxes: list[str], left: int) -> Iterator[str]:
    title = f"{survivor.verdict.value} {survivor.fingerprint}: {cut_text(survivor)}"
    yield f'<text x="{left}" y="48" style="{STYLE};font-weight:bold">{_text(title, 60)}</text>'
    suspects = suspect_links(survivor.chain)
    for row, label in enumerate(boxes):
        top = TOP + row * (BOX + GAP)
        yield f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{BOX}" rx="6" fill="#f3f3f3" stroke="#5a5a5a"/>'
        yield f'<text x="{left + 10}" y="{top + 24}" style="{STYLE}">{_text(label, 52)}</text>'
        if row + 1 < len(boxes):
            yield from _arrow(survivor, row - 1, left, top + BOX, row - 1 in suspects)


def _arrow(survivor: Survivor, index: int, left: int, top: int, suspect: bool) -> Iterator[str]:
    """The reference of link `index`, -1 from the root; the cut is dashed."""
    cut = index == survivor.cut.link
    colour = "#b0004e" if cut else "#d55e00" if suspect else "#5a5a5a"
    dash = ' stroke-dasharray="5 3"' if cut else ""
    x, end = left + 24, top + GAP
    yield f'<path d="M{x} {top}V{end}m-4 -7l4 7l4 -7" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
    if index >= 0:
        label = survivor.chain.links[index].reference + ("  (cut)" if cut else "")
        yield f'<text x="{x + 12}" y="{top + 26}" fill="{colour}" style="{STYLE};font-family:monospace">{_text(label, 48)}</text>'


def _text(text: str, most: int = 200) -> str:
    """Escaped and printable: control characters are not allowed in XML at all."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return escape(clean if len(clean) <= most else clean[: most - 3] + "...")

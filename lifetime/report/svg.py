"""SVG that stands alone: the built-in layout's own sheet of cards, and the finish on what an engine drew.

Both get a title and a description for those who hear the picture, the name of who drew it, and a style sheet that repaints
them where the reader's system is dark.
"""

from __future__ import annotations

import re

from lifetime.report.layout import Drawing, draw, text
from lifetime.report.palette import DARK, LIGHT, VERDICTS, Paint
from lifetime.report.picture import ArrowKind, BoxKind, Card, Picture

GUTTER, HEAD, COLUMNS = 18, 46, 2
FONT = "Helvetica,Arial,'Liberation Sans',sans-serif"
_TIP = re.compile(r'<title>[^<]*</title>\n<g id="(a_[^"]*)"><a xlink:title="([^"]*)">')


def sheet(picture: Picture, stamp: str) -> str:
    """The cards in rows of two, which fit the width of a README, drawn by the built-in layout."""
    drawings = [draw(card, picture.heaviest) for card in picture.cards]
    rows = [list(zip(picture.cards, drawings, strict=True))[k : k + COLUMNS] for k in range(0, len(drawings), COLUMNS)]
    lines = [("title", line) for line in picture.head] + [("note stamp", stamp)]
    parts = [f'<text class="{name}" x="{GUTTER}" y="{24 + 18 * k}">{text(line)}</text>' for k, (name, line) in enumerate(lines)]
    y, width = 20 + 18 * len(lines), 7 * max(map(len, picture.head)) + 2 * GUTTER
    for row in rows:
        x = GUTTER
        for card, drawing in row:
            parts.append(_framed(card, drawing, x, y))
            x += _outer(card, drawing) + GUTTER
        width, y = max(width, x), y + HEAD + max(drawing.height for _, drawing in row) + GUTTER
    rest = picture.rest
    parts += [f'<text class="title" x="{GUTTER}" y="{y + 6}">{text(rest)}</text>'] if rest else []
    height = y + (24 if rest else 0)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]
    return finish("\n".join([*head, *parts, "</svg>", ""]), picture, stamp, sheet_style(LIGHT), sheet_style(DARK))


def _outer(card: Card, drawing: Drawing) -> int:
    return max(drawing.width, round(7.4 * max(len(card.title), len(card.subtitle))) + 24)


def _framed(card: Card, drawing: Drawing, x: int, y: int) -> str:
    width, height = _outer(card, drawing), HEAD + drawing.height
    kind = "gone" if card.is_gone else card.verdict.value
    return (
        f'<g class="card" transform="translate({x} {y})"><title>{text(card.title)}</title>'
        f'<rect class="frame {kind}" width="{width}" height="{height}" rx="8"/>'
        f'<text class="title" x="12" y="20">{text(card.title)}</text>'
        f'<text class="note" x="12" y="36">{text(card.subtitle)}</text>'
        f'<g transform="translate({(width - drawing.width) // 2} {HEAD})">{drawing.markup}</g></g>'
    )


def finish(svg: str, picture: Picture, stamp: str, light: str, dark: str) -> str:
    """`svg` with title, description, stamp and style. An engine's document type, which names a file on the network, goes."""
    start = svg.index("<svg")
    tag = svg.index(">", start)
    style = f"{light}@media (prefers-color-scheme:dark){{{dark}}}"
    said = f"<title>{text(picture.title)}</title>\n<desc>{text(picture.alt)}</desc>\n<style>{style}</style>"
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {_comment(stamp)} -->\n'
    return f'{head}{svg[start:tag]} role="img">\n{said}{svg[tag + 1 :]}'


def engine_svg(svg: str, picture: Picture, stamp: str) -> str:
    """What `dot` or its kin drew, finished: tips become titles, which browsers show and screen readers read."""
    tipped = _TIP.sub(r'<title>\2</title>\n<g id="\1"><g>', svg).replace("</a>", "</g>")
    return finish(tipped, picture, stamp, "", engine_style(DARK))


def _comment(stamp: str) -> str:
    """Two hyphens would end an XML comment early."""
    return text(stamp).replace("--", "- -")


def sheet_style(paint: Paint) -> str:
    """The style sheet of the built-in layout."""
    boxes = "".join(f".{kind.value}>rect{{fill:{getattr(paint, kind.value)}}}" for kind in BoxKind)
    verdicts = "".join(f".{verdict.value}{{stroke:{colour}}}" for verdict, colour in VERDICTS.items())
    return (
        f"text{{font:12px {FONT};fill:{paint.ink};text-anchor:middle}}.title{{font-weight:bold;text-anchor:start}}"
        f".name{{font-weight:bold}}.note{{font-size:11px;fill:{paint.soft}}}.mono{{font:11px Courier,monospace}}"
        f".card>.note,.stamp{{text-anchor:start}}.times{{text-anchor:start;font-size:11px}}.paper{{fill:{paint.paper}}}"
        f".box>rect{{stroke:{paint.soft}}}{boxes}.tensor>rect{{stroke-width:2.2}}.more>rect{{stroke:none}}"
        f".frame{{fill:none;stroke-width:1.6}}{verdicts}.gone{{stroke:{paint.soft};stroke-dasharray:7 4}}"
        f".fold>rect{{fill:none;stroke:{paint.soft};stroke-dasharray:5 3}}"
        f".arrow path{{fill:none;stroke:{paint.soft}}}.arrow .head{{fill:{paint.soft};stroke:none}}"
        f".arrow .dash{{stroke-dasharray:5 3}}"
        f".suspect .mono{{font-weight:bold}}{_arrow_style('suspect', paint.suspect)}{_arrow_style('cut', paint.cut)}"
        f".pill{{fill:{paint.cut};stroke:{paint.cut}}}.cut text{{fill:{paint.paper}}}.cut .mono{{font-weight:bold}}"
        f".open .pill{{fill:{paint.paper}}}.open.cut text{{fill:{paint.cut}}}"
    )


def _arrow_style(name: str, colour: str) -> str:
    return f".{name} path{{stroke:{colour}}}.{name} .head{{fill:{colour};stroke:none}}"


def engine_style(paint: Paint) -> str:
    """Repaints what an engine drew from `palette.LIGHT`."""
    boxes = "".join(
        f".node.{kind.value} :is(polygon,path,ellipse){{fill:{getattr(paint, kind.value)};stroke:{paint.soft}}}"
        for kind in BoxKind
        if kind is not BoxKind.MORE
    )
    lines = {ArrowKind.PLAIN: paint.soft, ArrowKind.RING: paint.soft, ArrowKind.SUSPECT: paint.suspect, ArrowKind.CUT: paint.cut}
    arrows = "".join(
        f".edge.{kind.value} :is(path,polyline){{stroke:{colour}}}.edge.{kind.value} polygon{{fill:{colour};stroke:{colour}}}"
        for kind, colour in lines.items()
    )
    return (
        f"text{{fill:{paint.ink}}}text[fill='{LIGHT.soft}']{{fill:{paint.soft}}}.graph>polygon,.graph>g>g>polygon{{fill:{paint.paper}}}"
        f".cluster path{{fill:{paint.paper}}}{boxes}{arrows}"
        f".node.cut path{{fill:{paint.cut};stroke:{paint.cut}}}.node.cut text{{fill:{paint.paper}}}"
        f".node.open path{{fill:{paint.paper};stroke:{paint.cut}}}.node.open text{{fill:{paint.cut}}}"
    )

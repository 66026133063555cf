"""The reference graph as Mermaid, which GitHub, GitLab and most wikis draw where they find it in Markdown.

GitHub stops at 50 000 characters and 500 edges: six leaks stay far below. Every character that Mermaid or HTML could read as
its own becomes a numeric entity.
"""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.heap.model import Survivor
from lifetime.report.palette import LIGHT, VERDICTS
from lifetime.report.picture import Arrow, ArrowKind, Box, BoxKind, Card, Picture, card, picture
from lifetime.report.view import View

MOST_CARDS = 6
SAFE = frozenset(" ._+:/-,()")
OPEN = {
    BoxKind.ROOT: ('(["', '"])'),
    BoxKind.OBJECT: ('["', '"]'),
    BoxKind.AUTOGRAD: ('("', '")'),
    BoxKind.TENSOR: ('[["', '"]]'),
    BoxKind.MORE: ('["', '"]'),
}


def picture_mermaid(drawing: Picture) -> str:
    """A flowchart, root on top, one subgraph a leak."""
    return "\n".join(_lines(drawing)) + "\n"


def _lines(drawing: Picture) -> Iterator[str]:
    yield "flowchart TD"
    yield f"  accTitle: {_plain(drawing.title)}"
    links: list[str] = []
    # Layouts put the last subgraph first.
    for number, one in reversed(list(enumerate(drawing.cards))):
        yield from _card(one, f"s{number}", links)
    if drawing.rest:
        yield f'  rest["{_label(drawing.rest)}"]:::more'
    yield from _classes(drawing)
    for style in ("cut", "suspect", "ring"):
        numbers = ",".join(str(k) for k, kind in enumerate(links) if kind == style)
        if numbers:
            yield f"  linkStyle {numbers} {_link_style(style)}"


def _card(one: Card, name: str, links: list[str]) -> Iterator[str]:
    yield f'  subgraph {name}["{_label(one.title)}"]'
    yield "    direction TB"
    for index, box in enumerate(one.boxes):
        if box.fold is None:
            yield f"    {_box(box, f'{name}_{index}')}"
    for fold, times in enumerate(one.folds):
        yield f'    subgraph {name}_fold{fold}["{times} x"]'
        yield "      direction TB"
        yield from (f"      {_box(box, f'{name}_{k}')}" for k, box in enumerate(one.boxes) if box.fold == fold)
        yield "    end"
    for arrow in one.arrows:
        yield from (f"    {line}" for line in _arrow(arrow, name, links))
    yield "  end"
    frame = f"{LIGHT.soft},stroke-dasharray:7 4" if one.is_gone else VERDICTS[one.verdict]
    yield f"  style {name} fill:none,stroke:{frame},stroke-width:2px"
    yield from (f"  style {name}_fold{fold} fill:none,stroke:{LIGHT.soft},stroke-dasharray:5 3" for fold in range(len(one.folds)))


def _box(box: Box, name: str) -> str:
    before, after = OPEN[box.kind]
    text = "<br/>".join([f"<b>{_label(box.title)}</b>", *map(_label, box.notes)])
    return f"{name}{before}{text}{after}:::{box.kind.value}"


def _arrow(arrow: Arrow, name: str, links: list[str]) -> Iterator[str]:
    """One edge, or two where the cut interrupts the line. `links` collects kinds: Mermaid styles edges by number."""
    source, target = f"{name}_{arrow.source}", f"{name}_{arrow.target}"
    label = f'|"{_label(arrow.label)}"|' if arrow.label else ""
    links.append(arrow.kind.value)
    if arrow.kind is ArrowKind.CUT:
        links.append(arrow.kind.value)
        kind = "cut" if arrow.proved else "open"
        yield f'{source} --x{label} {source}_cut{{{{"{_label(arrow.note)}"}}}}:::{kind}'
        yield f"{source}_cut -.-> {target}"
    elif arrow.kind is ArrowKind.RING:
        yield f"{source} -.->{label} {target}"
    else:
        line = "==>" if arrow.kind is ArrowKind.SUSPECT else "-->"
        yield f"{source} {line}{label} {target}"


def _classes(drawing: Picture) -> Iterator[str]:
    """Fill, border and ink of each that is used, so that a dark page cannot put light text on a light box."""
    used = {box.kind for card in drawing.cards for box in card.boxes} | {BoxKind.MORE}
    for kind in sorted(used, key=list(BoxKind).index):
        width = 3 if kind is BoxKind.TENSOR else 1
        fill = getattr(LIGHT, kind.value)
        yield f"  classDef {kind.value} fill:{fill},stroke:{LIGHT.soft},color:{LIGHT.ink},stroke-width:{width}px"
    yield f"  classDef cut fill:{LIGHT.cut},stroke:{LIGHT.cut},color:{LIGHT.paper}"
    yield f"  classDef open fill:{LIGHT.paper},stroke:{LIGHT.cut},color:{LIGHT.cut}"


def _link_style(kind: str) -> str:
    colour = {"cut": LIGHT.cut, "suspect": LIGHT.suspect}.get(kind, LIGHT.soft)
    return f"stroke:{colour},stroke-width:2.5px"


def _label(text: str) -> str:
    """Letters, digits and a few marks as they are, the rest as entities: `#35;` is Mermaid's spelling of `&#35;`."""
    return "".join(c if c.isalnum() or c in SAFE else f"#{ord(c)};" for c in text)


def _plain(text: str) -> str:
    """An accessible title takes no entities and ends at the line."""
    return "".join(c if c.isalnum() or c in " .,+-()/" else " " for c in text)


def survivor_mermaid(survivor: Survivor) -> str:
    """One leak alone."""
    alone = card(survivor)
    return picture_mermaid(Picture(alone.title, (alone,), ""))


def view_mermaid(view: View) -> str:
    """The view as a file of its own."""
    return picture_mermaid(picture(view, MOST_CARDS))

"""The reference graph in DOT: a root on top, holders below it, the tensor at the end, one cluster a leak.

Fonts are Helvetica and Courier: the embedded engine has metrics for those alone. Colours are Okabe and Ito's, told apart by
colour-blind readers; in grey, line style, width and words say the same. Class names let a style sheet repaint the SVG.
"""

from __future__ import annotations

from html import escape

from graphviz import Digraph
from graphviz.quoting import escape as quoted

from lifetime import __version__
from lifetime.report.clean import columns
from lifetime.report.palette import LIGHT, VERDICTS
from lifetime.report.picture import Arrow, ArrowKind, Box, BoxKind, Card, Picture, pen_width, picture
from lifetime.report.view import View

COLUMNS = 2
"""Two fit the width of a README."""
SHAPES = {
    BoxKind.ROOT: ("ellipse", "filled"),
    BoxKind.OBJECT: ("box", "filled"),
    BoxKind.AUTOGRAD: ("box", "rounded,filled"),
    BoxKind.TENSOR: ("box", "bold,filled"),
    BoxKind.MORE: ("plaintext", ""),
}

COLOURS = {
    ArrowKind.PLAIN: LIGHT.soft,
    ArrowKind.SUSPECT: LIGHT.suspect,
    ArrowKind.CUT: LIGHT.cut,
    ArrowKind.RING: LIGHT.soft,
}
LABEL_NODE = {"shape": "plaintext", "fontname": "Courier", "fontsize": "10", "margin": "0.04,0.01", "height": "0"}


def picture_dot(drawing: Picture, stamp: str = "") -> str:
    """DOT source; the same picture gives the same text. `stamp` says who drew it."""
    graph = Digraph("lifetime", comment=quoted(stamp) if stamp else None)
    graph.attr(rankdir="TB", bgcolor=LIGHT.paper, fontname="Helvetica", fontcolor=LIGHT.ink, fontsize="11", margin="0.1")
    graph.attr(nodesep="0.25", ranksep="0.2", labelloc="t", labeljust="l", pack="36", packmode=f"array_tli{COLUMNS}")
    # What is not drawn is said up here: engines pack a lone node over the cards.
    head = (*drawing.head, drawing.rest if drawing.cards else "", stamp)
    graph.attr(label="".join(f"{_quoted(part)}\\l" for part in head if part))
    graph.attr(tooltip=_quoted(drawing.title))
    graph.attr("node", fontname="Helvetica", fontsize="11", fontcolor=LIGHT.ink, color=LIGHT.soft, margin="0.16,0.07")
    graph.attr("edge", color=LIGHT.soft, arrowsize="0.7")
    for number, card in enumerate(drawing.cards):
        _add_card(graph, card, f"s{number}", drawing.heaviest)
    if not drawing.cards:
        graph.node("rest", _quoted(drawing.rest), shape="plaintext", **{"class": "rest"})
    return str(graph.source)


def _add_card(graph: Digraph, card: Card, name: str, heaviest: int) -> None:
    colour, style = (LIGHT.soft, "rounded,dashed") if card.is_gone else (VERDICTS[card.verdict], "rounded")
    with graph.subgraph(name=f"cluster_{name}") as cluster:
        cluster.attr(label="", color=colour, style=style, penwidth="1.5", margin="12")
        cluster.attr(tooltip=_quoted(card.alt[:400]), **{"class": "card"})
        _add_title(cluster, card, name)
        for index, box in enumerate(card.boxes):
            if box.fold is None:
                _add_box(cluster, box, f"{name}_{index}")
        for fold, times in enumerate(card.folds):
            _add_fold(cluster, card, name, fold, times, heaviest)
        for arrow in card.arrows:
            if _fold_of(card, arrow) is None:
                _add_arrow(cluster, arrow, name, heaviest)


def _add_title(graph: Digraph, card: Card, name: str) -> None:
    """The title as a node: older engines pack clusters side by side as if their labels and rings had no width."""
    title = f"<b>{_html(card.title)}</b><br/><font point-size='10' color='{LIGHT.soft}'>{_html(card.subtitle)}</font>"
    side = "0.4" if any(arrow.kind is ArrowKind.RING for arrow in card.arrows) else "0.05"
    graph.node(f"{name}_title", f"<{title}>", shape="plaintext", margin=f"{side},0", **{"class": "title"})
    graph.edge(f"{name}_title", f"{name}_0", style="invis", weight="4")


def _fold_of(card: Card, arrow: Arrow) -> int | None:
    """The fold that both ends are in; an arrow that leaves it (or the ring) is in none."""
    source, target = card.boxes[arrow.source].fold, card.boxes[arrow.target].fold
    return source if source == target else None


def _add_fold(graph: Digraph, card: Card, name: str, fold: int, times: int, heaviest: int) -> None:
    with graph.subgraph(name=f"cluster_{name}_fold{fold}") as cluster:
        cluster.attr(
            label=f"{times} x ", labeljust="r", fontsize="10", style="dashed,rounded", color=LIGHT.soft, penwidth="1", margin="8"
        )
        cluster.attr(**{"class": "fold"})
        for index, box in enumerate(card.boxes):
            if box.fold == fold:
                _add_box(cluster, box, f"{name}_{index}")
        for arrow in card.arrows:
            if _fold_of(card, arrow) == fold:
                _add_arrow(cluster, arrow, name, heaviest)


def _add_box(graph: Digraph, box: Box, name: str) -> None:
    shape, style = SHAPES[box.kind]
    notes = "".join(f"<br/><font point-size='10' color='{LIGHT.soft}'>{_html(note)}</font>" for note in box.notes)
    label = f"<<b>{_html(box.title)}</b>{notes}>"
    fill = getattr(LIGHT, box.kind.value)
    extra = {"width": f"{_inches(box):.2f}"} if not (box.title + "".join(box.notes)).isascii() else {}
    graph.node(
        name,
        label,
        shape=shape,
        style=style,
        fillcolor=fill,
        tooltip=_quoted(box.tip or box.title),
        **{"class": box.kind.value},
        **extra,
    )


def _inches(box: Box) -> float:
    """The engine takes characters outside ASCII for narrow ones; this is wide enough for any."""
    return 0.3 + max(columns(text) for text in (box.title, *box.notes)) * 0.095


def _add_arrow(graph: Digraph, arrow: Arrow, name: str, heaviest: int) -> None:
    """An arrow with its label in the middle of the line: as a node, since packed layouts drop the labels of edges."""
    source, target = f"{name}_{arrow.source}", f"{name}_{arrow.target}"
    paint = {"color": COLOURS[arrow.kind], "penwidth": f"{pen_width(arrow.weight, heaviest):.1f}", "class": arrow.kind.value}
    if arrow.kind is ArrowKind.RING:
        graph.edge(source, target, style="dashed", constraint="false", tooltip=_quoted(arrow.label), **paint)
    elif arrow.kind is ArrowKind.CUT:
        _add_cut(graph, arrow, (source, target), paint)
    elif not arrow.label:
        graph.edge(source, target, minlen="2", tooltip="is", **paint)
    else:
        label, tip = f"{source}_to", _quoted(arrow.label)
        # A suspect is bold: colour alone says nothing in grey, and an underline would swallow the underscores.
        text = f"<<b>{_html(arrow.label)}</b>>" if arrow.kind is ArrowKind.SUSPECT else tip
        graph.node(label, text, tooltip=tip, **LABEL_NODE, **{"class": "label"})
        graph.edge(source, label, dir="none", weight="4", tooltip=tip, **paint)
        graph.edge(label, target, weight="4", tooltip=tip, **paint)


def _add_cut(graph: Digraph, arrow: Arrow, ends: tuple[str, str], paint: dict[str, str]) -> None:
    """The line ends at a bar, the pill says what the cut frees, and a dashed line goes on below it."""
    source, target = ends
    pill, tip = f"{source}_cut", _quoted(arrow.note)
    text = f"<<font face='Courier'><b>{_html(arrow.label)}</b></font><br/>{_html(arrow.note)}>"
    fill, ink = (LIGHT.cut, LIGHT.paper) if arrow.proved else (LIGHT.paper, LIGHT.cut)
    look = {"shape": "box", "style": "rounded,filled", "fillcolor": fill, "color": LIGHT.cut, "fontcolor": ink}
    graph.node(pill, text, tooltip=tip, **look, **{"class": "cut" if arrow.proved else "open"})
    graph.edge(source, pill, arrowhead="tee", weight="4", tooltip=tip, **paint)
    graph.edge(pill, target, style="dashed", arrowtail="tee", dir="both", weight="4", tooltip=tip, **paint)


def _quoted(text: str) -> str:
    """Text for a quoted DOT string: the engine's own escapes (\\N, \\l) and HTML entities lose their
    meaning, and text in angle brackets is no HTML label (a `str` method would lose that mark)."""
    quiet: str = quoted(text.replace("&", "&amp;"))
    return quiet


def _html(text: str) -> str:
    return escape(text)


def view_dot(view: View) -> str:
    """The view as a file of its own."""
    return picture_dot(picture(view), f"lifetime {__version__}")

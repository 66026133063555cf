"""The reference graph before any drawing: a card a leak, boxes from the root down to the tensor, arrows between them.

DOT, Mermaid and the built-in layout draw the same cards, so that no form can say something else than another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from lifetime.heap.model import Chain, Proof, Report, Survivor, Verdict
from lifetime.report.clean import middle_out, one_line
from lifetime.report.fold import Stretch, ring, stretches
from lifetime.report.view import Mark, View
from lifetime.report.words import (
    CYCLES,
    MEANING,
    also_text,
    amount,
    cut_reference,
    cut_text,
    freed_text,
    nothing,
    own_variables,
    reference_text,
    root_text,
    shape_text,
    short_place,
    size_text,
    status_text,
    summary,
    suspect_links,
    tensor_status,
    word,
)
from lifetime.units import bytes_text, plural

LABEL = 46
MOST_CARDS = 12
ENDS = 6
"""Boxes at either end of a chain that stays long after folding: more would not be seen in ten seconds."""
LEADS_TO_NODE = {"grad_fn", "next"}
AUTOGRAD_KINDS = {"next", "saved", "variable"}


class BoxKind(str, Enum):
    ROOT = "root"
    OBJECT = "object"
    AUTOGRAD = "autograd"
    TENSOR = "tensor"
    MORE = "more"


class ArrowKind(str, Enum):
    PLAIN = "plain"
    SUSPECT = "suspect"
    CUT = "cut"
    RING = "ring"
    """Closes a cycle, upwards."""


@dataclass(frozen=True)
class Box:
    """`fold` is the number of the stretch that the box repeats in, None outside of one."""

    kind: BoxKind
    title: str
    notes: tuple[str, ...] = ()
    tip: str = ""
    fold: int | None = None


@dataclass(frozen=True)
class Arrow:
    """From box to box, by index. `weight` is the bytes that hang below it; `note` is what the cut frees, `proved` whether
    that was shown."""

    source: int
    target: int
    label: str
    kind: ArrowKind = ArrowKind.PLAIN
    weight: int = 0
    note: str = ""
    proved: bool = False


@dataclass(frozen=True)
class Card:
    """One leak. `folds` is how often each folded stretch repeats; `alt` says the whole in words."""

    title: str
    subtitle: str
    verdict: Verdict
    fingerprint: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    folds: tuple[int, ...]
    alt: str
    mark: Mark | None = None

    @property
    def is_gone(self) -> bool:
        return self.mark is not None and self.mark.gone


@dataclass(frozen=True)
class Picture:
    """`rest` counts the survivors that are not drawn, or says that there is none; it is empty when all are drawn."""

    title: str
    cards: tuple[Card, ...]
    rest: str

    @property
    def heaviest(self) -> int:
        return max((arrow.weight for card in self.cards for arrow in card.arrows), default=1)

    @property
    def head(self) -> tuple[str, ...]:
        """The title in lines that are no wider than the cards below it."""
        return tuple(self.title.split("; "))

    @property
    def alt(self) -> str:
        return " ".join(part for part in (f"{self.title}.", *(card.alt for card in self.cards), self.rest) if part)


def pen_width(weight: int, heaviest: int) -> float:
    """1 to 3.5: the bytes below an edge against the heaviest of the picture, on a logarithmic scale.

    >>> pen_width(0, 100), pen_width(100, 100)
    (1.0, 3.5)
    """
    return 1.0 + 2.5 * math.log1p(weight) / math.log1p(max(heaviest, weight, 1))


def picture(view: View, most: int = MOST_CARDS) -> Picture:
    """The first `most` survivors of the view; they are sorted, the worst first. What a loop's own variables hold is only counted,
    unless there is nothing else."""
    report = view.report
    worth = [survivor for survivor in report.survivors if own_variables(survivor) is None] or list(report.survivors)
    shown = worth[:most]
    cards = tuple(card(survivor, view.mark(survivor)) for survivor in shown)
    return Picture(view.title or summary(report), cards, _rest(report, shown))


def _rest(report: Report, shown: Sequence[Survivor]) -> str:
    if not shown:
        return nothing(report)
    told = set(map(id, shown))
    left = [survivor for survivor in report.survivors if id(survivor) not in told]
    own = " (a loop's own variables)" if all(own_variables(survivor) for survivor in left) else ""
    return f"+ {len(left)} more, {bytes_text(sum(s.bytes for s in left))} together{own}" if left else ""


def card(survivor: Survivor, mark: Mark | None = None) -> Card:
    """The drawing of one leak."""
    folded = stretches(survivor, ENDS)
    folds = tuple(stretch.times for stretch in folded if stretch.times > 1)
    boxes, places = _boxes(survivor, folded)
    return Card(
        title=f"{_marked(mark)}{word(survivor, mark).upper()}: {amount(survivor)}",
        subtitle=f"fingerprint {one_line(survivor.fingerprint, 40)}"
        + (f", {one_line(mark.text.partition('; ')[0], 80)}" if mark else ""),
        verdict=survivor.verdict,
        fingerprint=one_line(survivor.fingerprint, 40),
        boxes=tuple(boxes),
        arrows=tuple(_arrows(survivor, boxes, places)),
        folds=folds,
        alt=_alt(survivor),
        mark=mark,
    )


def _marked(mark: Mark | None) -> str:
    return f"{one_line(mark.word, 30).upper()}, " if mark and not mark.gone else ""


def _boxes(survivor: Survivor, folded: tuple[Stretch, ...]) -> tuple[list[Box], dict[int, int]]:
    """The boxes from the root down, and the link that each box (by index) is the holder of."""
    chain = survivor.chain
    boxes: list[Box] = [] if chain.root.kind in CYCLES or _begins_with_root(chain) else [_root(chain)]
    places: dict[int, int] = {}
    fold = 0
    for stretch in folded:
        if stretch.left_out:
            boxes.append(Box(BoxKind.MORE, f"... {plural(stretch.left_out, 'more link')} ..."))
        for index in stretch.links:
            places[len(boxes)] = index
            boxes.append(_holder(chain, index, fold if stretch.times > 1 else None))
        fold += stretch.times > 1
    return [*boxes, _tensor(survivor)], places


def _begins_with_root(chain: Chain) -> bool:
    """The first holder is the module, class or frame that is the root: one box is enough."""
    if not chain.links:
        return False
    first, name = chain.links[0], chain.root.name
    before = name.removesuffix(f"{first.holder}{first.reference}")
    return first.kind == "native" or (before != name and not before[-1:].isidentifier())


def _root(chain: Chain) -> Box:
    root = chain.root
    notes = (short_place(root.where),) if root.where else ()
    return Box(BoxKind.ROOT, f"{root.kind.value} {middle_out(root.name, LABEL)}", notes, f"root: {root_text(chain, short=True)}")


def _holder(chain: Chain, index: int, fold: int | None) -> Box:
    link = chain.links[index]
    notes = [] if link.holder_type.endswith(link.holder) else [middle_out(link.holder_type, LABEL)]
    notes += [short_place(link.where)] if link.where else []
    notes += _ring_note(chain, index)
    title = middle_out(link.holder, LABEL)
    if index == 0 and _begins_with_root(chain):
        name = middle_out(chain.root.name.removesuffix(link.reference), LABEL)
        return Box(BoxKind.ROOT, f"{chain.root.kind.value} {name}", tuple(notes), f"root: {root_text(chain, short=True)}", fold)
    place = f" at {short_place(link.where)}" if link.where else ""
    tip = f"{one_line(link.holder_type)}{place}; leaking: {status_text(link)}"
    return Box(_kind(chain, index), title, tuple(notes), tip, fold)


def _kind(chain: Chain, index: int) -> BoxKind:
    """An autograd node says so by its type, or by the reference that leads to it or away from it."""
    link = chain.links[index]
    leads = index > 0 and chain.links[index - 1].kind in LEADS_TO_NODE
    is_node = "autograd" in link.holder_type or link.kind in AUTOGRAD_KINDS or leads
    return BoxKind.AUTOGRAD if is_node else BoxKind.OBJECT


def _tensor(survivor: Survivor) -> Box:
    tensor = survivor.tensor
    notes = [middle_out(shape_text(tensor), LABEL), size_text(tensor)]
    if survivor.count > 1:
        notes[1] += f", the largest of {survivor.count:,} storages"
    if tensor.created_at:
        notes.append(f"made at {short_place(tensor.created_at)}")
    if own_variables(survivor) is None:
        notes += [middle_out(f"also held by {other}", 2 * LABEL) for other in also_text(survivor)]
    notes += _ring_note(survivor.chain, len(survivor.chain.links))
    tip = f"{one_line(tensor.label)}, {shape_text(tensor)}; leaking: {tensor_status(survivor)}"
    if survivor.judged:
        tip += f"; {MEANING[survivor.verdict]}"
    return Box(BoxKind.TENSOR, middle_out(tensor.label, LABEL), tuple(notes), tip)


def _ring_note(chain: Chain, place: int) -> list[str]:
    """What to say at the two ends of a ring: they are one object."""
    lower, upper = ring(chain) or (None, None)
    return {upper: ["a cycle closes here"], lower: ["the same as above"]}.get(place, [])


def _arrows(survivor: Survivor, boxes: list[Box], places: dict[int, int]) -> Iterator[Arrow]:
    """Down the column, then the ring. Above the cut hang all bytes of the leak, below it those of the shown tensor."""
    suspects = suspect_links(survivor.chain)
    for source in range(len(boxes) - 1):
        index = places.get(source)
        below = index is not None and index > survivor.cut.link
        weight = survivor.tensor.storage_bytes if below else survivor.bytes
        if index == survivor.cut.link or not survivor.chain.links:
            yield _cut(survivor, source)
        elif index is None:
            yield Arrow(source, source + 1, "", weight=weight)
        else:
            kind = ArrowKind.SUSPECT if index in suspects else ArrowKind.PLAIN
            yield Arrow(source, source + 1, middle_out(survivor.chain.links[index].reference, LABEL), kind, weight)
    closed = ring(survivor.chain)
    box_of = {index: box for box, index in places.items()} | {len(survivor.chain.links): len(boxes) - 1}
    if closed and closed[0] in box_of and closed[1] in box_of:
        yield Arrow(box_of[closed[0]], box_of[closed[1]], "is the same: a cycle", ArrowKind.RING, survivor.bytes)


def _cut(survivor: Survivor, source: int) -> Arrow:
    cut = survivor.cut
    note = f"cut here: {freed_text(survivor)} ({cut.proof.value})"
    label = middle_out(cut_reference(survivor), LABEL)
    return Arrow(source, source + 1, label, ArrowKind.CUT, survivor.bytes, note, cut.proof is Proof.PROVED)


def _alt(survivor: Survivor) -> str:
    """The holder chain as one sentence, for those who hear the picture."""
    chain = survivor.chain
    steps = [reference_text(chain.links[k]) for stretch in stretches(survivor) for k in stretch.links]
    shown = ", then ".join(steps[:12]) + (", and so on" if len(steps) > 12 else "")
    start = f"root {root_text(chain, short=True)}"
    tensor = f"{one_line(survivor.tensor.label)} {shape_text(survivor.tensor)}"
    return f"{word(survivor)}, {amount(survivor)}: {start}; {shown}, to {tensor}. Cut: {cut_text(survivor)}."

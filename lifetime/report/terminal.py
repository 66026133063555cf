"""Lines as a terminal shows them: wrapped to its width, coloured where it can, plain everywhere else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from typing import TextIO

from lifetime.report.clean import columns

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
NARROWEST = 40
PAINTS = (
    # first match wins; the first group is painted, the rest stays
    (re.compile(r"(lifetime: .*)"), BOLD),
    (re.compile(r"(\d+ of \d+  (?:GROWING|UNTIL-GC).*)"), f"{BOLD};{RED}"),
    (re.compile(r"(\d+ of \d+  LINGERING.*)"), f"{BOLD};{YELLOW}"),
    (re.compile(r"(\d+ of \d+  GONE.*)"), f"{BOLD};{GREEN}"),
    (re.compile(r"(?:│|\u200b)\s+(Leaking: NO\b.*)"), GREEN),
    (re.compile(r"(?:│|\u200b)\s+(Leaking: YES\b.*)"), RED),
    (re.compile(r"(?:│|\u200b)\s+(Leaking: UNKNOWN.*)"), DIM),
    (re.compile(r"│\s+(~+)"), f"{BOLD};{RED}"),
    (re.compile(r"│\s+(↓ .*)"), CYAN),
    (re.compile(r"(?:├─|╰→) (.*)"), BOLD),
    (re.compile(r"  (Cut|Also held by|Owners|In Python|Hint|Sites):"), BOLD),
    (re.compile(r"(\s*(?:gaps: |\+ \d).*)"), DIM),
)
_PREFIX = re.compile(r"(?:├─ |╰→ |│ *(?:↓ )?|\u200b *| *)")


def shown(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """`lines` as `stream` should get them. A file or a pipe gets them as they are."""
    if not _is_terminal(stream):
        yield from lines
        return
    width = max(shutil.get_terminal_size().columns, NARROWEST)
    paint = wants_colour(stream)
    for line in lines:
        pieces = list(wrapped(line, width))
        yield from (painted(piece, line) for piece in pieces) if paint else pieces


def wants_colour(stream: TextIO) -> bool:
    """A terminal, and neither NO_COLOR (https://no-color.org) nor TERM=dumb says otherwise."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def wrapped(line: str, width: int) -> Iterator[str]:
    """`line` in pieces of at most `width` columns; the tree's trunk goes on beside the later ones. Underlines are cut."""
    if columns(line) <= width:
        yield line
        return
    found = _PREFIX.match(line)
    prefix, rest = line[: found.end() if found else 0], line[found.end() if found else 0 :]
    later = re.sub("[├↓]", lambda m: "│" if m.group() == "├" else " ", prefix).replace("─", " ").replace("╰→", "  ") + "  "
    if set(rest) == {"~"}:
        yield prefix + rest[: width - columns(prefix)]
        return
    rooms = max(width - columns(prefix), 10), max(width - columns(later), 10)
    for number, piece in enumerate(_pieces(rest, *rooms)):
        yield (later if number else prefix) + piece


def _pieces(text: str, room: int, later: int) -> Iterator[str]:
    """Cut at a space where there is one in the last half, else behind a dot, a slash or a comma."""
    while columns(text) > room:
        end = room
        while columns(text[:end]) > room:
            end -= 1
        best = max(text.rfind(mark, end // 2, end) for mark in "./,_")
        space = text.rfind(" ", end // 2, end + 1)
        end = space if space > 0 else best + 1 if best > 0 else end
        yield text[:end].rstrip()
        text, room = text[end:].lstrip(), later
    yield text


def painted(piece: str, line: str) -> str:
    """`piece` of `line` with the escape codes of that line's kind; what is painted to the end goes on in the later pieces."""
    found, code = next(((match, code) for pattern, code in PAINTS if (match := pattern.match(line))), (None, ""))
    if found is None:
        return piece
    start, end = found.span(1)
    if not line.startswith(piece):
        start, end = len(piece) - len(piece.lstrip(" │\u200b")), len(piece) if end == len(line) else 0
    start, end = min(start, len(piece)), min(end, len(piece))
    return f"{piece[:start]}\x1b[{code}m{piece[start:end]}\x1b[0m{piece[end:]}" if end > start else piece

"""Where values stand in a JSON text, so that one can be replaced and the rest stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Numbers are not looked at: one of ten thousand digits is none of our business."""


def members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the object that begins at `start`."""
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = DECODER.raw_decode(text, at)
        begin = _skip(text, _skip(text, at) + 1)
        _, end = DECODER.raw_decode(text, begin)
        yield key, begin, end
        at = _next(text, end)


def elements(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Start and end of each element of the list that begins at `start`."""
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        yield at, end
        at = _next(text, end)


def in_style_of(old: str, lines: list[str]) -> str:
    """A list of `lines` (at least one), or one string of them, laid out as the JSON value `old` is."""
    ascii_only = "\\u" in old
    if old[0] != "[":
        return json.dumps("".join(lines), ensure_ascii=ascii_only)
    places = list(elements(old, 0))
    before, after = (old[1 : places[0][0]], old[places[-1][1] : -1]) if places else ("", "")
    between = old[places[0][1] : places[1][0]] if len(places) > 1 else f",{before}" if before else ", "
    return f"[{before}{between.join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)}{after}]"


def _skip(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _next(text: str, end: int) -> int:
    """Where the next key or element starts, or the end of what holds them."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at

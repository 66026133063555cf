"""The layout of a source as its indentation shows it, before anything is parsed: a second gate for rules that the first lets in
too often."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set
from functools import cache

LOOP = (rb"for\b", rb"while\b")
DEFINITION = (rb"def +(\w+)",)
CALL = re.compile(rb"(\w+)\(")
GROWTH = re.compile(
    rb"""[+-]=(?! *(?:\d|len\(|[rfb]*["']))|\.(?:append|appendleft|extend|add_)\((?! *(?:\d|len\(|[rfb]*["']|\)))"""
    rb"|\] *=[^=]|=[^=\n]*\+|= *\[\*|\b(?:add|sub|cat|concat|hstack|vstack)\("
)
"""What adds to something; numbers and texts aside."""
BACKWARD = (rb"backward\w*\s*\(",)
READING = (rb"\.detach\(\)", rb"\.item\(\)", rb"float\(")
NOT_RECORDING = (rb"no_grad", rb"inference_mode", rb"set_grad_enabled")
"""Patterns that begin with plain text: `re` looks for those ten times as fast as for alternatives or a leading `\\b`."""

Region = tuple[int, int]


def may_accumulate(data: bytes) -> bool:
    """Whether something may grow in a loop that runs a backward, or in a function that reads what grew and is not itself run
    without recording."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    loops = [(m.end(), last) for m, last in blocks(data, LOOP)]
    ran = positions(data, BACKWARD)
    functions = [(m.end(), last, m[1]) for m, last in blocks(data, DEFINITION)] if loops else []
    steps = {name for first, last, name in functions if count(ran, (first, last))} - {b"backward"}
    if any((count(ran, loop) or calls(data, loop, steps)) and GROWTH.search(data, *loop) for loop in loops):
        return True
    read, silent = positions(data, READING), positions(data, NOT_RECORDING)
    hidden = [(first, last) for first, last, _ in functions if not _reads((first, last), read, silent)]
    return bool(read) and any(GROWTH.search(data, *loop) for loop in loops if not _is_hidden(loop, hidden, functions))


def _reads(scope: Region, read: list[int], silent: list[int]) -> bool:
    """Whether a function reads something, and nothing outside of it switches recording off."""
    return count(read, scope) > 0 and count(silent, scope) == len(silent)


def _is_hidden(loop: Region, hidden: list[Region], functions: list[tuple[int, int, bytes]]) -> bool:
    """Whether the innermost function around a loop is one of `hidden`."""
    around = [(first, last) for first, last, _ in functions if first < loop[0] < last]
    return bool(around) and max(around) in hidden


def blocks(data: bytes, heads: Iterable[bytes]) -> Iterator[tuple[re.Match[bytes], int]]:
    """Heads at the beginning of a line, each with the end of its block."""
    for found in (m for head in heads for m in re.finditer(head, data)):
        line = data.rfind(b"\n", 0, found.start()) + 1
        before = data[line : found.start()]
        if before.strip() in {b"", b"async"}:
            yield found, end(data, found.end(), len(before) - len(before.lstrip()))


def end(data: bytes, start: int, indent: int) -> int:
    """Where the block ends whose head is indented so far: at the next line that is not; comments, closing brackets and the
    inside of long strings aside."""
    for found in _outside(indent).finditer(data, start):
        if not any(data.count(quotes, start, found.start()) % 2 for quotes in (b'"""', b"'''")):
            return found.start()
    return len(data)


@cache
def _outside(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n[ \t]{0,%d}[^\s#)\]}]" % indent)


def positions(data: bytes, patterns: Iterable[bytes]) -> list[int]:
    return sorted(m.start() for pattern in patterns for m in re.finditer(pattern, data))


def calls(data: bytes, region: Region, names: Set[bytes]) -> bool:
    """Whether one of `names` is called in `region`; however many there are, it is gone through once."""
    return bool(names) and any(m[1] in names for m in CALL.finditer(data, *region))


def count(found: list[int], region: Region) -> int:
    return bisect_left(found, region[1]) - bisect_left(found, region[0])

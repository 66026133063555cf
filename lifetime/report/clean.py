"""Foreign text made harmless: names come from other people's programs and hand-edited files, and may hold anything.

Each form escapes for itself what is special in it; what no form can show (control characters, marks that turn the reading
direction, lone surrogates) becomes a visible escape here.
"""

from __future__ import annotations

import unicodedata


def one_line(text: str, most: int = 200) -> str:
    """`text` without line breaks or invisible characters, at most `most` characters of it.

    >>> one_line("red\\x1b[31m"), one_line("a" * 9, most=6)
    ('red\\\\x1b[31m', 'aaa...')
    """
    short = text if len(text) <= most else text[: max(most - 3, 0)] + "..."
    return short if short.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in short)


def middle_out(text: str, most: int) -> str:
    """`text` with its middle left out: of a path or a reference both ends matter.

    >>> middle_out("/very/long/way/to/train.py:3", 20)
    '/very...o/train.py:3'
    """
    clean = one_line(text, 10_000)
    if len(clean) <= most:
        return clean
    head = (most - 3) // 3
    return clean[:head] + "..." + clean[len(clean) - (most - 3 - head) :]


def columns(text: str) -> int:
    """How many character cells `text` takes: wide East Asian characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(_cells(c) for c in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")

"""Large sources parsed piece by piece: the parser needs twice the memory of the tree that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator

LARGE = 400_000
"""Characters above which a source is taken apart."""
START = re.compile(r"^(?=(?:@|class |def |async def ))", re.MULTILINE)


def pieces(source: str) -> Iterator[str]:
    """`source` cut before definitions of its top level, each piece behind as many empty lines as there were lines before it.

    Read off the text: a piece may end within a string or a decorated definition, and does not parse then.
    """
    begin, lines = 0, 0
    for found in START.finditer(source):
        if found.start() - begin >= LARGE // 4 and not _is_decorated(source, found.start()):
            yield "\n" * lines + source[begin : found.start()]
            lines += source.count("\n", begin, found.start())
            begin = found.start()
    yield "\n" * lines + source[begin:]


def _is_decorated(source: str, at: int) -> bool:
    before = source[source.rfind("\n", 0, max(0, at - 1)) + 1 : at]
    return before.startswith("@")

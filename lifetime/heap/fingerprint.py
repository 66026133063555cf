"""A chain without what changes between runs and layers, as a small number; and the hash that names a leak.

Note [shapes]: a shape is a sequence of tokens in which every run of repeating ones stands once. Shapes are interned, a shape is
its parent plus one token: chains of 10 000 references cost one number a node, not one tuple.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lifetime.heap.references import LONGEST_RUN, Token

Shape = int
EMPTY: Shape = 0
LENGTH = 12


class Shapes:
    def __init__(self) -> None:
        self._above: list[Shape] = [EMPTY]
        self._token: list[int] = [-1]
        self._known: dict[tuple[Shape, int], Shape] = {}
        self._tokens: list[Token] = []
        self._number: dict[Token, int] = {}

    def longer(self, shape: Shape, token: Token) -> Shape:
        """`shape` and one token more; the same shape as one run earlier where the token completes a repetition."""
        number = self._number.setdefault(token, len(self._tokens))
        if number == len(self._tokens):
            self._tokens.append(token)
        there = self._known.get((shape, number))
        if there is None:
            there = self._known[shape, number] = self._folded(shape, number)
        return there

    def tokens(self, shape: Shape) -> tuple[Token, ...]:
        found = []
        while shape != EMPTY:
            found.append(self._tokens[self._token[shape]])
            shape = self._above[shape]
        return tuple(reversed(found))

    def _folded(self, shape: Shape, number: int) -> Shape:
        recent = [number]
        at = [len(self._above)]
        above = shape
        while above != EMPTY and len(recent) < 2 * LONGEST_RUN:
            recent.append(self._token[above])
            at.append(above)
            above = self._above[above]
        for run in range(1, len(recent) // 2 + 1):
            if recent[:run] == recent[run : 2 * run]:
                return at[run]
        self._above.append(shape)
        self._token.append(number)
        return len(self._above) - 1


def fingerprint(tokens: Sequence[Token]) -> str:
    """The name of the leak whose suspect references are `tokens`: the same for every layer and in every run."""
    text = "\n".join("\t".join(token) for token in tokens)
    return hashlib.sha1(text.encode(errors="backslashreplace"), usedforsecurity=False).hexdigest()[:LENGTH]

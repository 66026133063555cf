"""A reference as Python would write it, and as a fingerprint keeps it: without indices, keys and counters of one run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind

_NAMED = frozenset({NodeKind.FUNCTION, NodeKind.FRAME, NodeKind.CLASS, NodeKind.MODULE})
_UNCUTTABLE = frozenset({EdgeKind.STORAGE, EdgeKind.NEXT, EdgeKind.VARIABLE, EdgeKind.BASE})
_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*|\[\d+\])*\Z")
_INDEX = re.compile(r"\[[^\[\]'\"]*\]")
_DIGITS = re.compile(r"\d+")
LONGEST_RUN = 4
"""References that repeat together and count once: `.next`, or `.__dict__` `['next']` `[0]` of a linked list."""

Token = tuple[str, str, str]
"""(holder, kind, reference): one step of a chain, the same in every run and for every layer."""


def reference(edge: Edge) -> str:
    """What to write behind the holder: `.grad_fn`, `['k']`, `[3]`, `.cell_contents`; `<...>` where Python has no word for it."""
    name = edge.name
    if name[:1] in {".", "[", "<"}:
        return name
    if edge.kind is EdgeKind.ITEM:
        return f"[{name}]"
    if not name:
        return f"<{edge.kind.value}>"
    return f".{name}" if _PLAIN.match(name) else f"<{name}>"


def is_cuttable(edge: Edge) -> bool:
    """Whether this one reference can be taken away by itself: C++ gives no way to clear a `next_functions`, Python none to
    clear an object's `__dict__`."""
    return edge.kind not in _UNCUTTABLE and not is_namespace(edge)


def is_namespace(edge: Edge) -> bool:
    """Whether the edge leads from an object to the dictionary of its attributes, a hop that a reader does not want to see."""
    return edge.name.endswith("__dict__")


def holder(node: Node) -> str:
    """What a reader should call the node: its name where it has one, else its type."""
    return node.label or node.type_name.rpartition(".")[2]


def token(node: Node, edge: Edge) -> Token:
    """The step over `edge`, which leaves `node`, as it looks in every run."""
    who = _DIGITS.sub("*", node.label) if node.kind in _NAMED else node.type_name
    return (who, edge.kind.value, blurred(reference(edge)))


def blurred(text: str) -> str:
    """
    >>> blurred(".next_functions[0][1]"), blurred("['step_12']"), blurred("[(4, 'x')]"), blurred("._saved_self")
    ('.next_functions[*][*]', "['step_*']", '[*]', '._saved_self')
    """
    if text.startswith("[(") or (text.startswith("[") and text[1:2] not in {"'", '"'}):
        return "[*]"
    return _DIGITS.sub("*", _INDEX.sub("[*]", text))


def collapsed(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens with every run of up to `LONGEST_RUN` repeating ones written once: a list of any length is one leak."""
    kept: list[Token] = []
    for one in tokens:
        kept.append(one)
        for length in range(1, LONGEST_RUN + 1):
            if len(kept) >= 2 * length and kept[-length:] == kept[-2 * length : -length]:
                del kept[-length:]
                break
    return tuple(kept)

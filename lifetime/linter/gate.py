"""The byte-level gate: which rules can have anything to say about a file, decided without parsing it."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import NamedTuple


class Known(NamedTuple):
    """What must be known of a rule before it is imported. Each group of needles is one way to pass the gate."""

    code: str
    name: str
    default: bool
    needles: tuple[tuple[bytes, ...], ...]


RULES = (
    Known("LT000", "unused-keep", True, ((rb"lifetime\s*:\s*keep",),)),
    Known("LT001", "uncleared-leaf-grad", True, ((rb"\.grad\b", rb"backward"), (rb"""[\"']grad[\"']""", rb"backward"))),
    Known(
        "LT002",
        "unguarded-release",
        True,
        ((rb"[cC]aptur|CUDAGraph|cuda\.graph\(|make_graphed_callables", rb"backward", rb"\bgrad\b"),),
    ),
    Known("LT003", "unnamed-holder", True, ((rb"\bgrad\b", rb"backward", rb"#"),)),
    Known("LT004", "tensor-on-ctx", False, ((rb"\bFunction\s*\)", rb"\bautograd\b", rb"\bdef (?:forward|setup_context)\b"),)),
    Known("LT005", "grad-read-after-release", True, ((rb"\.grad\b", rb"backward"), (rb"""[\"']grad[\"']""", rb"backward"))),
    Known("LT006", "published-leaf", True, ((rb"backward", rb"detach|requires_grad|Variable"),)),
    Known("LT007", "hook-holds-tensor", True, ((rb"register_(?:hook|post_accumulate_grad_hook|prehook)\s*\(",),)),
    Known("LT008", "create-graph-backward", True, ((rb"\bbackward\s*\(", rb"create_graph\s*=\s*True"),)),
    Known(
        "LT009",
        "graph-accumulated",
        False,
        (
            (rb"backward\s*\(", rb"\+=|\.append\(|\.add_\(|= *\w[^\n]*\+", rb"\b(?:for|while)\b"),
            (rb"\.detach\(", rb"(?:cat|stack)\(", rb"\.append\(", rb"\b(?:for|while)\b"),
            (rb"\.item\(", rb"\.(?:eval|train)\(\)", rb"(?:loss|Loss|criterion|objective)\w*\(", rb"\+", rb"\b(?:for|while)\b"),
        ),
    ),
    Known("LT010", "retained-graph", True, ((rb"retain_graph\s*=\s*True",),)),
    Known("LT011", "stale-leaf-grad", True, ((rb"\.grad\b", rb"backward"), (rb"""[\"']grad[\"']""", rb"backward"))),
)
"""Every rule, as its file says; a test holds the two together."""


def hits(data: bytes, codes: Collection[str]) -> frozenset[str]:
    """The rules among `codes` that have every needle of one of their groups in `data`."""
    seen: dict[bytes, bool] = {}

    def has(needle: bytes) -> bool:
        if needle not in seen:
            seen[needle] = bool(_compiled(needle).search(data))
        return seen[needle]

    return frozenset(code for code, groups in _plan() if code in codes and any(all(map(has, group)) for group in groups))


@cache
def _plan() -> list[tuple[str, list[list[bytes]]]]:
    """The needles of every rule, in each group those first that are found fastest."""
    return [(rule.code, [sorted(group, key=_is_slow) for group in rule.needles]) for rule in RULES]


def _is_slow(needle: bytes) -> bool:
    """`re` searches fast only for what begins with plain text."""
    return b"|" in needle or not re.match(rb"(?:\\b)?(?:\w|\\\W){2}", needle)


@cache
def _compiled(needle: bytes) -> re.Pattern[bytes]:
    """Without a leading `\\b`, which would cost a factor of fifteen: the gate may let through a little too much."""
    return re.compile(needle.removeprefix(rb"\b"))

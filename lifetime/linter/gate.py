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
    Known(
        "LT001",
        "uncleared-leaf-grad",
        True,
        ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]")),
    ),
    Known(
        "LT002",
        "unguarded-release",
        True,
        (
            (rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"[cC]aptur|CUDAGraph|cuda\.graph\(|make_graphed_callables"),
            (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]", rb"[cC]aptur|CUDAGraph|cuda\.graph\(|make_graphed_callables"),
        ),
    ),
    Known(
        "LT003",
        "unnamed-holder",
        True,
        ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"#"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]", rb"#")),
    ),
    Known("LT004", "tensor-on-ctx", True, ((rb"\bFunction\s*\)", rb"\bautograd\b", rb"\bdef (?:forward|setup_context)\b"),)),
    Known(
        "LT005",
        "grad-read-after-release",
        True,
        ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]")),
    ),
    Known("LT006", "published-leaf", True, ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]", rb"detach|requires_grad|Variable"),)),
    Known("LT007", "hook-holds-tensor", True, ((rb"register_(?:hook|post_accumulate_grad_hook|prehook)\s*\(",),)),
    Known("LT008", "create-graph-backward", True, ((rb"\bbackward\s*\(", rb"create_graph\s*=\s*True"),)),
    Known(
        "LT009",
        "graph-accumulated",
        True,
        (
            (rb"\.(?:manual_)?backward\s*\(", rb"\b(?:for|while)\b"),
            (rb"\.detach\(", rb"(?:cat|stack)\([^\n]*\)\.detach\(", rb"\.append\(", rb"\b(?:for|while)\b"),
            (rb"\.item\(", rb"\.eval\(\)|\.train\(\)", rb"[lL]oss\w*\(|criterion\w*\(|objective\w*\("),
        ),
    ),
    Known("LT010", "retained-graph", True, ((rb"retain_graph\s*=\s*True",),)),
    Known(
        "LT011",
        "stale-leaf-grad",
        True,
        ((rb"\.grad\b", rb"backward\w*\(\s*[^)\s]"), (rb"""[\"']grad[\"']""", rb"backward\w*\(\s*[^)\s]")),
    ),
)
"""Every rule, as its file says; a test holds the two together."""


OUTSIDE_TESTS = frozenset({"LT001", "LT002", "LT003", "LT005", "LT006", "LT011"})
"""Rules that have nothing to say about tests, which compare gradients on purpose and end at once."""
ACCUMULATING = frozenset({"LT009"})
"""Rules about what grows in a loop: needles alone would let a third of all training code through."""
TEST_FILE = re.compile(r"^(?:test_.*|.*_test|tests|conftest)\.py$")
TEST_FOLDERS = frozenset({"test", "tests", "unit_tests", "unittests", "testing"})


SIGNS_OF_A_TEST = ("pytest", "unittest", "def test", "assert_close", "allclose")


def is_test_path(path: str) -> bool:
    """Whether the file lies among tests, or is called like one."""
    folders = path.replace("\\", "/").split("/")
    return bool(TEST_FILE.match(folders[-1])) or not TEST_FOLDERS.isdisjoint(folders[:-1])


def is_test(path: str, data: bytes) -> bool:
    """Whether the file is a test: by its name or folder; outside the working directory by its content too.

    There a folder called `tests` may be anything, even what a whole checkout lies in.
    """
    if TEST_FILE.match(path.replace("\\", "/").rpartition("/")[2]):
        return True
    outside = path.startswith("/") or path[1:2] == ":"
    return is_test_path(path) and (not outside or any(sign.encode() in data for sign in SIGNS_OF_A_TEST))


def hits(data: bytes, codes: Collection[str], path: str = "") -> frozenset[str]:
    """The rules among `codes` that have every needle of one of their groups in `data`, and something to say about such a file."""
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # Python takes a bare carriage return for a line end too
    if path and is_test(path, data):
        codes = frozenset(codes) - OUTSIDE_TESTS
    seen: dict[bytes, bool] = {}

    def has(needle: bytes) -> bool:
        if needle not in seen:
            seen[needle] = any(contains(search.text) and search.pattern.search(data) for search in _searches(needle))
        return seen[needle]

    def contains(text: bytes) -> bool:
        if text not in seen:
            seen[text] = text in data
        return seen[text]

    found = frozenset(code for code, groups in _plan() if code in codes and any(all(map(has, group)) for group in groups))
    return found - ACCUMULATING if ACCUMULATING & found and not _may_accumulate(data, path) else found


def _may_accumulate(data: bytes, path: str) -> bool:
    from lifetime.linter import layout  # most files do not get here

    return path.endswith(".ipynb") or layout.may_accumulate(data)


class Search(NamedTuple):
    """A pattern and a plain text in all that it matches, which is faster to look for and which several have in common."""

    text: bytes
    pattern: re.Pattern[bytes]


@cache
def _plan() -> list[tuple[str, list[list[bytes]]]]:
    """The needles of every rule; in each group those first that have the longest text, as the rarest and fastest to look for."""
    return [(rule.code, [sorted(group, key=_length, reverse=True) for group in rule.needles]) for rule in RULES]


def _length(needle: bytes) -> int:
    return min(len(search.text) for search in _searches(needle))


@cache
def _searches(needle: bytes) -> tuple[Search, ...]:
    """A needle as patterns of which one must be found.

    `re` searches fast, by a factor of ten, for what begins with plain text: so alternatives and a leading class are looked for
    one by one, and a leading `\\b` is dropped (the gate may let through a little too much).
    """
    has_group = b"(" in re.sub(rb"\\.", b"", needle)
    alternatives = [needle] if has_group else re.findall(rb"(?:\\.|\[[^\]]*\]|[^|\\\[])+", needle)
    plain = [each.removeprefix(rb"\b") for alternative in alternatives for each in _without_class(alternative)]
    return tuple(Search(_plain_text(pattern), re.compile(pattern)) for pattern in plain)


TOKEN = re.compile(rb"(?P<plain>[^\\.^$*+?{}\[\]|()]|\\\W)|(?P<many>[*?+]|\{[^}]*\})|\\.|\[\^?\]?[^\]]*\]|\((?:[^()\\]|\\.)*\)|.")


def _plain_text(pattern: bytes) -> bytes:
    """The longest text that every match of `pattern` has in it; empty where that is hard to say."""
    runs = [b""]
    for token in TOKEN.finditer(pattern):
        if token["plain"]:
            runs[-1] += token["plain"][-1:]
        elif token[0] in (b"|", b"(", b")"):
            return b""
        else:
            runs[-1] = runs[-1][:-1] if token["many"] and token["many"] != b"+" else runs[-1]
            runs.append(b"")
    return max(runs, key=len)


def _without_class(pattern: bytes) -> list[bytes]:
    """`[ab]c` as `ac` and `bc`."""
    found = re.match(rb"\[((?:\w|\\?[\"'])+)\](?![*+?{])", pattern)
    if not found:
        return [pattern]
    return [re.escape(bytes([character])) + pattern[found.end() :] for character in found[1].replace(b"\\", b"")]

"""The gate knows every rule, and lets through every file that a rule's needles are in."""

from __future__ import annotations

import re

import pytest

from lifetime.linter import gate, layout, registry
from lifetime.linter.gate import Known

RULES = registry.load()


def test_the_table_says_what_the_rules_say() -> None:
    table = tuple(Known(rule.code, rule.name, rule.default, rule.needles) for rule in RULES)
    assert table == gate.RULES, "write it anew in lifetime/linter/gate.py:\n" + "\n".join(f"    {row!r}," for row in table)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_what_has_the_needles_passes(rule: Known) -> None:
    """The patterns that are searched may be looser than the needles, never stricter."""
    sources = [bad.source.encode() for each in RULES for bad in each.bad]
    for source in sources:
        has = any(all(re.search(needle, source) for needle in group) for group in rule.needles)
        aside = rule.code in gate.ACCUMULATING and not layout.may_accumulate(source)
        assert not has or aside or rule.code in gate.hits(source, {rule.code})


NEEDLES = {
    rb"[cC]aptur|Graph": (b"Capture", b"a capture", b"Graph"),
    rb"[\"']grad[\"']": (b"'grad'", b'"grad"', b"\"grad'"),
    rb"(?:for|while) x": (b"for x", b"while x"),
    rb"a[|]b": (b"a|b",),
    rb"a\|b": (b"a|b",),
    rb"[ab]*c": (b"c", b"abc"),
    rb"\bword\b": (b"a word.",),
    rb"words?": (b"word", b"words"),
    rb"ab{2}c*": (b"abb", b"abbcc"),
    rb"a\.b\(\s*": (b"a.b(",),
    rb"(?:x)y|z": (b"xy", b"z"),
    rb"a\wb": (b"acb",),
}


@pytest.mark.parametrize("needle", NEEDLES)
def test_a_needle_taken_apart_finds_what_it_found_whole(needle: bytes) -> None:
    for text in NEEDLES[needle]:
        assert re.search(needle, text) and all(s.text in text or not s.pattern.search(text) for s in gate._searches(needle))
        assert any(s.text in text and s.pattern.search(text) for s in gate._searches(needle)), text


def test_only_what_was_asked_for() -> None:
    assert gate.hits(b"x = 1\n", {"LT000", "LT001"}) == frozenset()
    assert gate.hits(b"# lifetime: keep\n", {"LT001"}) == frozenset()
    assert gate.hits(b"# lifetime: keep\n", {"LT000", "LT001"}) == {"LT000"}

"""Every rule keeps what its examples promise. Nothing here knows a rule by name: a new file under rules/ is tested as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from lifetime.linter import fixer, gate, page, registry
from lifetime.linter.engine import check_source
from lifetime.linter.model import Finding, Safety
from lifetime.linter.rule import Bad, Good, Rule

REPO = Path(__file__).resolve().parent.parent
RULES = registry.load()
BAD = [pytest.param(rule, bad, id=f"{rule.code}-bad{n}") for rule in RULES for n, bad in enumerate(rule.bad, 1)]
GOOD = [pytest.param(rule, good, id=f"{rule.code}-good{n}") for rule in RULES for n, good in enumerate(rule.good, 1)]
NAME = "example.py"


def findings(source: str) -> tuple[Finding, ...]:
    """What all rules say, those included that are off by default."""
    return check_source(source, NAME, select=["ALL"])


def fixed(rule: Rule, source: str) -> str:
    """What the rule's fixes make of `source`; a rule that judges what others say needs those beside it."""
    return fixer.fix_source(source, NAME, select=["ALL"] if rule.last else [rule.code], unsafe=True)[0]


@pytest.mark.parametrize(("rule", "bad"), BAD)
def test_bad_example_has_exactly_its_findings(rule: Rule, bad: Bad) -> None:
    found = findings(bad.source)
    assert tuple(f.span.start_line for f in found if f.code == rule.code) == bad.lines
    assert {f.code for f in found} <= {rule.code, *bad.also}, "another rule speaks up and `also` does not say so"


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize(("rule", "bad"), BAD)
def test_line_ends_change_nothing(rule: Rule, bad: Bad, end: str) -> None:
    found = findings(bad.source.replace("\n", end))
    assert tuple(f.span.start_line for f in found if f.code == rule.code) == bad.lines


@pytest.mark.parametrize(("rule", "bad"), BAD)
def test_findings_are_well_formed(rule: Rule, bad: Bad) -> None:
    for finding in findings(bad.source):
        if finding.code != rule.code:
            continue
        assert finding.name == rule.name and finding.path == NAME and finding.fingerprint
        assert finding.message[:1].strip() and not finding.message.endswith(".")
        assert len(finding.message) <= 160, "a message is one sentence that fits a terminal"
        assert finding.fix is None or finding.fix.edits and (finding.fix.safety is Safety.UNSAFE) == bool(finding.fix.reason)


@pytest.mark.parametrize(("rule", "bad"), BAD)
def test_fix_gives_what_the_example_says(rule: Rule, bad: Bad) -> None:
    if bad.fixed is None:
        assert all(f.fix is None for f in findings(bad.source) if f.code == rule.code), "there is a fix: say what it makes"
        return
    after = fixed(rule, bad.source)
    assert after == bad.fixed
    compile(after, NAME, "exec")
    assert rule.code not in {f.code for f in findings(after)}, "a fixed example is clean"
    assert fixed(rule, after) == after, "fixing twice changes nothing"


@pytest.mark.parametrize(("rule", "bad"), BAD)
def test_fix_is_black_stable(rule: Rule, bad: Bad) -> None:
    black = pytest.importorskip("black")
    mode = black.Mode(line_length=130, string_normalization=False)
    if bad.fixed is None or black.format_str(bad.source, mode=mode) != bad.source:
        return  # what black would change anyway says nothing about the fix
    assert black.format_str(bad.fixed, mode=mode) == bad.fixed


@pytest.mark.parametrize(("rule", "good"), GOOD)
def test_good_example_is_clean(rule: Rule, good: Good) -> None:
    found = {f.code for f in findings(good.source)}
    assert rule.code not in found
    assert found <= set(good.also), "another rule speaks up and `also` does not say so"
    compile(good.source, NAME, "exec")
    assert good.because


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"LT\d{3}", rule.code)
    assert type(rule).__module__ == f"lifetime.rules.{rule.name.replace('-', '_')}", "the file is named like the rule"
    assert len(rule.bad) >= 2 and len(rule.good) >= 3
    assert page.page_text(rule).startswith(f"{rule.code}: ") and page.summary(rule)
    headings = re.findall(r"(?m)^\s*\**(Why|Fix safety|Source)\b", page.page_text(rule))
    assert headings == ["Why", "Fix safety", "Source"]


def calls(source: str) -> int:
    """How many function calls checking `source` takes: a measure of work that no other process disturbs."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        findings(source)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_work_is_linear_in_the_length_of_a_file(rule: Rule) -> None:
    """The longest example, repeated as functions of one file: twice as many take about twice the work."""
    longest = max((bad.source for bad in rule.bad), key=len)
    findings(longest)  # what is done once is done
    few, many = (calls(longest * repeats) for repeats in (10, 40))
    assert many < 6 * few, f"four times the length takes {many / few:.1f} times the work"


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_bad_example_passes_the_gate(rule: Rule) -> None:
    assert all(gate.hits(bad.source.encode(), {rule.code}) for bad in rule.bad)


def test_readme_table_is_not_stale() -> None:
    table = "\n".join(page.table_lines(RULES))
    assert table in (REPO / "README.md").read_text(), f"`lifetime explain --output-format markdown` now prints:\n{table}"

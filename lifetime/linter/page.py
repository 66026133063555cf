"""A rule's page, made of its docstring and its examples; and the table of all rules."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from lifetime.linter.rule import Bad, Good, Rule


def summary(rule: Rule) -> str:
    """The defect in one sentence."""
    return page_text(rule).partition("\n\n")[0].removeprefix(f"{rule.code}:").strip().replace("\n", " ")


def page_text(rule: Rule) -> str:
    """The prose of the page: the docstring of the rule's class."""
    return inspect.cleandoc(type(rule).__doc__ or "")


def fixes(rule: Rule) -> str:
    """Whether the rule comes with a fix, as its examples show."""
    return "yes" if any(bad.fixed is not None for bad in rule.bad) else "no"


def page_lines(rule: Rule) -> Iterator[str]:
    """The whole page: what, why, how safe the fix is, and every example."""
    on = "on by default" if rule.default else f"off by default: --extend-select {rule.code}"
    yield f"{rule.code} {rule.name} ({rule.severity.value}, {on}, fix: {fixes(rule)})"
    yield ""
    yield from page_text(rule).splitlines()
    for bad in rule.bad:
        yield from _bad_lines(bad, rule.code)
    for good in rule.good:
        yield from _good_lines(good)


def _bad_lines(bad: Bad, code: str) -> Iterator[str]:
    yield from ("", "Bad:", "")
    for number, line in enumerate(bad.source.splitlines(), 1):
        yield f"    {line}{f'  # <- {code}' if number in bad.lines else ''}".rstrip()
    if bad.fixed is not None:
        yield from ("", "  fixed:", "", *(f"    {line}".rstrip() for line in bad.fixed.splitlines()))


def _good_lines(good: Good) -> Iterator[str]:
    yield from ("", f"Good, because {good.because}:", "", *(f"    {line}".rstrip() for line in good.source.splitlines()))


def list_lines(rules: Sequence[Rule]) -> Iterator[str]:
    """One line a rule; those that are off by default say so."""
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        off = "" if rule.default else " (off by default)"
        yield f"{rule.code}  {rule.name:<{width}}  {summary(rule)}{off}"


def table_lines(rules: Sequence[Rule]) -> Iterator[str]:
    """The table of the README, in Markdown."""
    yield "| code | name | finds | fix | default |"
    yield "| --- | --- | --- | --- | --- |"
    for rule in rules:
        finds = summary(rule).rstrip(".").replace("|", "\\|")
        yield f"| {rule.code} | {rule.name} | {finds} | {fixes(rule)} | {'on' if rule.default else 'off'} |"


def row(rule: Rule) -> dict[str, object]:
    """Everything that the page says, as plain values."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "default": rule.default,
        "fix": fixes(rule),
        "summary": summary(rule),
        "page": page_text(rule),
        "bad": [{"source": bad.source, "lines": list(bad.lines), "fixed": bad.fixed} for bad in rule.bad],
        "good": [{"source": good.source, "because": good.because} for good in rule.good],
    }

"""`lifetime explain`: a rule's page, or the list of rules."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

from lifetime.errors import UsageError
from lifetime.linter import page, registry
from lifetime.linter.rule import Rule


def run(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        "lifetime explain", description="Show a rule's page, or the list of rules.", allow_abbrev=False
    )
    parser.add_argument("rules", nargs="*", metavar="CODE", help="codes or names of rules (default: list them all)")
    parser.add_argument(
        "--output-format", choices=("text", "json", "markdown"), default="text", help="markdown: the README's table"
    )
    options = parser.parse_args(argv)
    rules = [_rule(named) for named in options.rules]
    for line in _lines(rules, options.output_format):
        print(line)
    return 0


def _rule(named: str) -> Rule:
    for rule in registry.load():
        if named.upper() == rule.code or named.lower() == rule.name:
            return rule
    raise UsageError(f"no rule {named!r}", f"rules: {', '.join(rule.code for rule in registry.load())}")


def _lines(rules: Sequence[Rule], format: str) -> Iterator[str]:
    if format == "json":
        yield json.dumps([page.row(rule) for rule in rules or registry.load()], indent=2)
    elif format == "markdown":
        yield from page.table_lines(rules or registry.load())
    elif not rules:
        yield from page.list_lines(registry.load())
    for number, rule in enumerate(rules if format == "text" else ()):
        yield from ("", "") if number else ()
        yield from page.page_lines(rule)

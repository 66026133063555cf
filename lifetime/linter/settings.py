"""What to check and how: the resolved options of a run, and which rules they select."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lifetime.errors import UsageError


@dataclass(frozen=True)
class Known:
    """What must be known of a rule before it is imported."""

    code: str
    name: str
    default: bool


@dataclass(frozen=True)
class Settings:
    """Options that may differ from folder to folder. Selectors are codes, prefixes of codes, rule names or `ALL`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    root: str = ""
    """The folder that patterns are relative to."""


def selected(rules: Sequence[Known], settings: Settings, ignored: Sequence[str] = ()) -> frozenset[str]:
    """The codes that run. The longer selector wins; at equal length `ignore` does.

    Raises:
        UsageError: a selector names no rule.
    """
    wanted = settings.select + settings.extend_select
    unwanted = (*settings.ignore, *ignored)
    for selector in (*wanted, *unwanted):
        if not any(weight(rule, selector) >= 0 for rule in rules):
            raise UsageError(f"no rule {selector!r}", "`lifetime explain` lists the rules")
    return frozenset(rule.code for rule in rules if _is_on(rule, settings, wanted, unwanted))


def _is_on(rule: Known, settings: Settings, wanted: Sequence[str], unwanted: Sequence[str]) -> bool:
    base = 0 if rule.default and not settings.select else -1
    pro = max((base, *(weight(rule, s) for s in wanted)))
    return pro >= 0 and pro > max((-1, *(weight(rule, s) for s in unwanted)))


def weight(rule: Known, selector: str) -> int:
    """How precisely `selector` names the rule: -1 not at all, 0 for ALL, else the length of the prefix."""
    if selector == "ALL":
        return 0
    if selector == rule.name:
        return len(rule.code)
    return len(selector) if selector and rule.code.startswith(selector) else -1

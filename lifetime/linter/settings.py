"""What to check and how: the resolved options of a run, and which rules they select."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from lifetime.errors import UsageError
from lifetime.linter import gate
from lifetime.linter.gate import Known

if TYPE_CHECKING:
    from lifetime.linter.patterns import Patterns


class Selection(NamedTuple):
    """One layer of choices (a configuration, the command line). Selectors are codes, prefixes, rule names or `ALL`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()


class PathPatterns(NamedTuple):
    """Patterns and the folder that they are relative to."""

    root: str
    patterns: Patterns

    def match(self, file: str, is_folder: bool = False) -> bool:
        relative = below(self.root, file)
        return relative is not None and self.patterns.covers(relative, is_folder)


class Settings(NamedTuple):
    """Options that may differ from folder to folder. A later layer of `selections` overrides an earlier one."""

    selections: tuple[Selection, ...] = ()
    exclude: tuple[PathPatterns, ...] = ()
    per_file_ignores: tuple[tuple[PathPatterns, tuple[str, ...]], ...] = ()
    force_exclude: bool = False

    def is_excluded(self, file: str, is_folder: bool = False) -> bool:
        return any(each.match(file, is_folder) for each in self.exclude)

    def codes(self, file: str) -> frozenset[str]:
        """The codes that run on `file`."""
        off = tuple(code for each, codes in self.per_file_ignores if each.match(file) for code in codes)
        return selected((*self.selections, Selection(ignore=off)) if off else self.selections)


def path_patterns(root: str, globs: Sequence[str]) -> PathPatterns:
    from lifetime.linter.patterns import patterns

    return PathPatterns(root, patterns(globs))


def below(root: str, file: str) -> str | None:
    """The path of `file` relative to `root`, POSIX; None when it lies elsewhere."""
    prefix = root if root.endswith(("/", "\\")) else f"{root}/"
    file = file.replace("\\", "/") if "\\" in root else file
    return file[len(prefix) :] if file.startswith(prefix.replace("\\", "/")) else None


@cache
def selected(layers: tuple[Selection, ...]) -> frozenset[str]:
    """The codes that are on after all layers. Within a layer the longer selector wins; at equal length `ignore` does.

    Raises:
        UsageError: a selector names no rule.
    """
    rules = gate.RULES
    on = {rule.code for rule in rules if rule.default}
    for layer in layers:
        wanted, unwanted = layer.select + layer.extend_select, layer.ignore
        if unknown := [s for s in (*wanted, *unwanted) if not any(weight(rule, s) >= 0 for rule in rules)]:
            raise UsageError(f"no rule {unknown[0]!r}", "`lifetime explain` lists the rules")
        on = on if not layer.select else set()
        for rule in rules:
            pro = max((weight(rule, s) for s in wanted), default=-1)
            con = max((weight(rule, s) for s in unwanted), default=-1)
            if pro > con:
                on.add(rule.code)
            elif con >= 0:
                on.discard(rule.code)
    return frozenset(on)


def weight(rule: Known, selector: str) -> int:
    """How precisely `selector` names the rule: -1 not at all, 0 for ALL, else the length of the prefix."""
    if selector == "ALL":
        return 0
    if selector == rule.name:
        return len(rule.code)
    return len(selector) if selector and rule.code.startswith(selector) else -1

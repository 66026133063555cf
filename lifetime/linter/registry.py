"""All rules, found by name in the package `lifetime.rules`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from lifetime.errors import RuleError
from lifetime.linter.rule import Rule


@cache
def load() -> tuple[Rule, ...]:
    """One instance of every rule, sorted by code.

    Raises:
        RuleError: the package is shadowed, a file does not import, or it does not define exactly one rule.
    """
    try:
        package = import_module("lifetime.rules")
    except ModuleNotFoundError:
        help = "pip install -e . in the checkout"
        raise RuleError("this checkout shadows the installed package: lifetime.rules is missing", "LT", help) from None
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))
    return tuple(sorted((_rule(name) for name in names), key=lambda rule: rule.code))


def _rule(name: str) -> Rule:
    try:
        module = import_module(f"lifetime.rules.{name}")
    except Exception as error:
        raise RuleError(f"rule {name} does not load: {error!r}", name, "reinstall torch-lifetime") from error
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Rule) and v.__module__ == module.__name__]
    if len(own) != 1:
        raise RuleError(f"rule file {name} defines {len(own)} rules, not one", name)
    rule: Rule = own[0]()
    return rule

"""The byte-level gate: which rules can have anything to say about a file, decided without parsing it."""

from __future__ import annotations

import re
from collections.abc import Collection

from lifetime.linter.settings import Known


def rules() -> list[Known]:
    from lifetime.linter import registry

    return [Known(rule.code, rule.name, rule.default) for rule in registry.load()]


def hits(data: bytes, codes: Collection[str]) -> frozenset[str]:
    """The rules among `codes` whose needles are in `data`."""
    from lifetime.linter import registry

    return frozenset(
        rule.code
        for rule in registry.load()
        if rule.code in codes and any(all(re.search(n, data) for n in group) for group in rule.needles)
    )

"""Which fixes a verification applies, and the sources that come of them. Text in, text out; no file is touched."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lifetime.errors import LifetimeError
from lifetime.linter import edits, gate, loader
from lifetime.linter.engine import check_source
from lifetime.linter.model import Finding
from lifetime.linter.places import shown
from lifetime.report.lint_json import row

LAST_ROUND = 10
STALE = "LT011"
LEFT_ALONE = tuple(f"{os.sep}{name}{os.sep}" for name in ("torch", "lifetime"))
"""torch's own checkpoint has the defect too; unless a site names it, a user's pull request is not about that."""


class Fixes:
    """`found` are the findings whose fix is (or would be) applied, as lint's JSON; `stale` are LT011 findings beside them."""

    def __init__(self, select: Sequence[str], sites: Sequence[str], *, apply: bool) -> None:
        self.select = tuple(select)
        self.sites = frozenset(site(text) for text in sites)
        self.apply = apply
        self.found: list[dict[str, object]] = []
        self.stale: list[str] = []
        self.refused: list[str] = []

    def touches(self, path: str) -> bool:
        """The module at `path` has a finding that was asked for."""
        if not path.endswith(".py") or (not self.sites and any(part in path for part in LEFT_ALONE)):
            return False
        try:
            data = loader.read(path)
            return bool(gate.hits(data, self.select) and self._chosen(loader.decode(data, path).source, path))
        except LifetimeError:
            return False  # Python itself will say what is wrong with it

    def fixed(self, data: bytes, path: str) -> bytes:
        """The bytes of the module with the fixes made, or unchanged where they are not to be applied."""
        text = loader.decode(data, path)
        chosen = self._chosen(text.source, path)
        self.found += [row(finding) for finding in chosen]
        stale = check_source(text.source, shown(path), file=path, select=[STALE])
        self.stale += [f"{f.path}:{f.span.start_line}" for f in stale]
        if not self.apply:
            return data
        source = text.source
        for _ in range(LAST_ROUND):
            if not chosen:
                break
            source = self._round(source, chosen, path)
            chosen = [] if self.sites else self._chosen(source, path)
        return source.encode("utf-8")

    def _round(self, source: str, chosen: Sequence[Finding], path: str) -> str:
        fixes = edits.compatible(finding.fix for finding in chosen if finding.fix)
        result = edits.splice(source, [edit for fix in fixes for edit in fix.edits])
        try:
            loader.parse(result, path)
        except LifetimeError as error:
            self.refused.append(f"{path}: the fixed source does not parse ({error.message})")
            return source
        return result

    def _chosen(self, source: str, path: str) -> list[Finding]:
        found = check_source(source, shown(path), file=path, select=self.select)
        wanted = [f for f in found if not self.sites or (os.path.realpath(path), f.span.start_line) in self.sites]
        return [f for f in wanted if f.fix is not None]


def site(text: str) -> tuple[str, int]:
    """The real path and the line in `PATH:LINE`.

    Raises:
        LifetimeError: it is something else.
    """
    path, _, line = text.rpartition(":")
    if not path or not line.isdigit():
        raise LifetimeError(f"--site {text!r} is not PATH:LINE", "example: --site megatron/core/tensor_parallel/random.py:569")
    return os.path.realpath(path), int(line)

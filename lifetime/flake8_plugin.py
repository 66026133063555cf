"""`flake8` shows our findings too: chosen by its own `--select` and `--ignore`, excused by keep comments or `# noqa`."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from lifetime import __version__
from lifetime.errors import LifetimeError
from lifetime.linter import engine


class Plugin:
    """One file, as flake8 hands it over."""

    name = "lifetime"
    version = __version__

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        self.filename = filename
        self.source = "".join(lines)

    def run(self) -> Iterator[tuple[int, int, str, type]]:
        """(line, column, text, origin) of each finding; a failure of ours is a line too, never silence."""
        file = "" if self.filename in ("-", "stdin") else os.path.abspath(self.filename)
        try:
            for finding in engine.check_source(self.source, self.filename, file=file):
                yield finding.span.start_line, finding.span.start_column, f"{finding.code} {finding.message}", type(self)
        except LifetimeError as error:
            yield 1, 0, f"LT999 could not be checked: {error.message}", type(self)

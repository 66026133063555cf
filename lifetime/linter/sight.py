"""A cheap first look at the text of a file: where something is back-propagated, detached, or not recorded at all."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Set

from lifetime.linter.accumulation import Accumulation, AnyLoop, accumulations
from lifetime.linter.module import Function, Module
from lifetime.linter.statements import functions

BACKWARD = (r"backward\w*\s*\(",)
READING = (r"\.detach\(\)", r"\.item\(\)", r"float\(")
NOT_RECORDING = ("no_grad", "inference_mode", "set_grad_enabled")
"""Patterns that begin with plain text: `re` looks for those ten times as fast as for alternatives or a leading `\\b`."""
FEW = 20
"""Names that are looked for one by one; of more, every call of the file is looked up."""


class Sight:
    """Lines of a file, by what they may do. A call of a function that runs a backward counts as one."""

    def __init__(self, module: Module) -> None:
        self.backward = _lines(BACKWARD, module)
        steps = {f.name for f in functions(module) if _count(self.backward, f)} - {"backward"}
        if steps:
            called = [rf"{name}\(" for name in steps] if len(steps) <= FEW else [r"\w+\("]
            self.backward = sorted([*self.backward, *_lines(called, module, whole=True, only={f"{name}(" for name in steps})])
        self.reading = _lines(READING, module, whole=True)
        self.silent = _lines(NOT_RECORDING, module)

    def promising(self, scope: Function | ast.Module) -> list[Accumulation]:
        """Accumulations of which something certain may be known: their loop holds a backward, or the function reads a total
        and nothing around it switches recording off."""
        read = _count(self.reading, scope) > 0 and self.records(scope)
        if not read and not _count(self.backward, scope):
            return []
        return [one for one in accumulations(scope) if read or _count(self.backward, one.loop)]

    def records(self, scope: Function | ast.Module | None) -> bool:
        """Whether no line outside of `scope` switches recording off. What the function does itself is seen by walking it."""
        return scope is None or isinstance(scope, ast.Module) or _count(self.silent, scope) == len(self.silent)


def _lines(patterns: Iterable[str], module: Module, *, whole: bool = False, only: Set[str] = frozenset()) -> list[int]:
    """Numbers of the lines with a match, in order; with `whole`, only of matches that do not begin within a word; with `only`,
    of those matches."""
    source, starts = module.plain, []
    for pattern in patterns:
        for match in re.finditer(pattern, source):
            begin = match.start()
            if only and match[0] not in only:
                continue
            if not whole or not begin or not source[begin].isidentifier() or not f"_{source[begin - 1]}".isidentifier():
                starts.append(begin)
    lines: list[int] = []
    line, at = 1, 0
    for start in sorted(starts):
        line += source.count("\n", at, start)
        at = start
        lines.append(line)
    return lines


def _count(lines: list[int], scope: Function | ast.Module | AnyLoop) -> int:
    if not scope.body:
        return 0
    return bisect_left(lines, (scope.body[-1].end_lineno or 0) + 1) - bisect_left(lines, scope.body[0].lineno)

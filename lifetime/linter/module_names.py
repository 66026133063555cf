"""Which names of a file are modules, and which methods a class has, by what the source does with them."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from functools import cached_property

from lifetime.linter.imports import Imports
from lifetime.linter.module import Module
from lifetime.linter.torch_names import MODULE_METHODS

USED = re.compile(rf"\.(?:(?:{'|'.join(sorted(MODULE_METHODS))})\(|(?:train|eval)\((?:True|False|mode)?\))")
GIVEN = re.compile(r"[=:] *([A-Za-z_][\w.]*)")
CHAIN = re.compile(r"([A-Za-z_][\w.]*) *$")
LONGEST = 80


def methods(owner: ast.ClassDef | None) -> set[str]:
    body = owner.body if owner else []
    return {s.name for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}


class ModuleNames:
    """Dotted names that only a module can stand behind: `x.parameters()`, `x.eval()`, `x = nn.Linear(...)`, `x: nn.Module`.

    Read off the text, which is many times cheaper than off the tree and errs only where a comment speaks of code.
    """

    def __init__(self, module: Module, imports: Imports) -> None:
        self.source = module.plain
        self.imports = imports

    @cached_property
    def uses(self) -> list[tuple[int, str]]:
        given = (m.start() for m in GIVEN.finditer(self.source) if is_module_class(m[1], self.imports))
        ends = sorted([*(m.start() for m in USED.finditer(self.source)), *given])
        line, at = 1, 0
        numbered: list[tuple[int, str]] = []
        for end in ends:
            line += self.source.count("\n", at, end)
            at = end
            if chain := CHAIN.search(self.source, max(0, end - LONGEST), end):
                numbered.append((line, chain[1]))
        return numbered

    def within(self, scope: ast.Module | ast.stmt) -> set[str]:
        if isinstance(scope, ast.Module):
            return {name for _, name in self.uses}
        first = bisect_left(self.uses, (scope.lineno, ""))
        last = bisect_left(self.uses, ((scope.end_lineno or scope.lineno) + 1, ""))
        return {name for _, name in self.uses[first:last]}


def is_module_class(written: str, imports: Imports) -> bool:
    """`nn.Linear` and the like, or a class of this file that is a module."""
    name = imports.full_name(written)
    if name.startswith("torch.nn.") and not name.startswith(("torch.nn.functional", "torch.nn.utils", "torch.nn.init")):
        return name.rpartition(".")[2][:1].isupper() and not name.endswith(("Parameter", "Buffer"))
    defined = imports.defined.get(name)
    if not isinstance(defined, ast.ClassDef):
        return False
    return any((imports.resolve(base) or "").startswith("torch.nn.") for base in defined.bases)

"""The release that a harvest lacks, as edits: behind the harvest, over the very leaves, under the guard of the file."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache

from lifetime.linter.capture import Capture
from lifetime.linter.flow.index import imported
from lifetime.linter.model import Edit, Span
from lifetime.linter.module import Function, Module
from lifetime.linter.regular import opened
from lifetime.linter.release_plan import INDENT, plan
from lifetime.linter.release_site import Site


def release_edits(
    module: Module, place: Site, reads: list[ast.expr], guard: str, imports: str, comment: str
) -> tuple[Edit, ...] | None:
    """Edits that release at `place` what `reads` harvest; None where the harvest is not understood well enough.

    `guard` is a condition (empty: none) under which the release runs, `imports` a line that must precede it.
    """
    plans = [plan(module, place.statement, read) for read in reads]
    if not all(plans):
        return None
    lines = dict.fromkeys("\n".join(p.lines) for p in plans if p)
    block = [*([comment] if comment else []), *"\n".join(lines).split("\n")]
    if guard:
        column = module.span(place.anchor).start_column
        block = ([imports, ""] if imports else []) + [*guarded(module, guard, column), *(INDENT + line for line in block)]
    return _placed(module, place.anchor, place.function, block)


def guarded(module: Module, guard: str, column: int) -> list[str]:
    """The head of the guard, as black writes it at `column`."""
    line = f"if {guard}:"
    if column + len(line) <= line_length(module.file) or not guard.startswith("not ("):
        return [line]
    return ["if not (", INDENT + guard.removeprefix("not (").removesuffix(")"), "):"]


@lru_cache(maxsize=64)
def line_length(file: str) -> int:
    """What black or ruff is told in the nearest pyproject.toml; 88 where nobody says."""
    folder = os.path.dirname(os.path.abspath(file)) if file else ""
    while folder:
        try:
            with open(os.path.join(folder, "pyproject.toml"), encoding="utf-8", opener=opened) as handle:
                found = re.search(r"(?m)^\s*line[-_]length\s*=\s*(\d+)", handle.read())
            return int(found[1]) if found else 88
        except (OSError, UnicodeDecodeError):
            parent = os.path.dirname(folder)
            folder = parent if parent != folder else ""
    return 88


def _placed(module: Module, statement: ast.stmt, function: Function, block: list[str]) -> tuple[Edit, ...]:
    """`block` behind `statement`; a return is split into a name, the block and the return of the name."""
    span = module.span(statement)
    indent = module.lines[span.start_line - 1][: span.start_column]
    edits = []
    if isinstance(statement, ast.Return):
        name = _unused(module, function)
        at = Span(span.start_line, span.start_column, span.start_line, span.start_column + len("return"))
        edits.append(Edit(at, f"{name} ="))
        block = [*block, f"return {name}"]
    last = len(module.lines[span.end_line - 1])
    text = "".join(f"\n{indent}{line}" if line else "\n" for line in block)
    edits.append(Edit(Span(span.end_line, last, span.end_line, last), text))
    return tuple(edits)


def _unused(module: Module, function: Function) -> str:
    """A name for the hoisted value that the function does not use."""
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} | {
        a.arg for a in ast.walk(function) if isinstance(a, ast.arg)
    }
    candidates = ("grads", "input_grads", "result", "harvested", *(f"grads_{n}" for n in range(1, 1000)))
    return next(c for c in candidates if c not in names)


def guard_of(capture: Capture, module: Module, node: ast.AST) -> tuple[str, str] | None:
    """The guard and the import it needs at `node`; None where the file has no way to ask."""
    query = capture.query or "torch.cuda.is_current_stream_capturing()"
    name = query.split("(")[0].split(".")[0]
    top, imports = _names(module)
    function = module.enclosing_function(node)
    inside = [n for n in ast.walk(function) if isinstance(n, (ast.Import, ast.ImportFrom))] if function else []
    earlier = {a for n in inside if n.lineno < getattr(node, "lineno", 0) for a in imported(n)}
    if name in top or name in earlier:
        # Without CUDA in the build torch's own query raises.
        asks_torch = "is_current_stream_capturing" in query and "torch" in top
        return (f"not (torch.cuda.is_available() and {query})" if asks_torch else f"not {query}"), ""
    source = imports.get(name)
    if source is None or not source[1]:
        return None
    what = name if name == source[1] else f"{source[1]} as {name}"
    return f"not {query}", f"from {source[0]} import {what}"


def _names(module: Module) -> tuple[frozenset[str], dict[str, tuple[str, str]]]:
    """Names that are bound at the top of the file, and what every import in it, of a function too, stands for."""
    found = module.memo.get("names")
    if not isinstance(found, tuple):
        top = {s.name for s in module.tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))}
        top.update(a for s in module.tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) for a in imported(s))
        every = (n for n in ast.walk(module.tree) if isinstance(n, ast.ImportFrom))
        found = module.memo["names"] = frozenset(top), {k: v for n in every for k, v in imported(n).items()}
    return found

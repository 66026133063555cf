"""Names as the imports of a file spell them: `F.relu` is `torch.nn.functional.relu`."""

from __future__ import annotations

import ast

from lifetime.linter.module import Module
from lifetime.linter.statements import all_statements

LONGEST = 100


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` for a chain of names, None for anything else, one too long to be written by hand included."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < LONGEST:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


class Imports:
    """Every import of a file, wherever it stands, as local name -> full name; and what the file defines at its top."""

    def __init__(self, module: Module) -> None:
        self.full: dict[str, str] = {}
        self.defined: dict[str, ast.stmt] = {}
        for node, _ in all_statements(module):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.full[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.full[alias.asname or alias.name] = f"{'.' * node.level}{node.module or ''}.{alias.name}"
        for statement in module.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.defined[statement.name] = statement

    def resolve(self, node: ast.expr) -> str | None:
        """The full name behind a chain of names; the chain itself where its head was not imported."""
        name = dotted(node)
        return self.full_name(name) if name else None

    def full_name(self, name: str) -> str:
        head, dot, rest = name.partition(".")
        return f"{self.full.get(head, head)}{dot}{rest}"

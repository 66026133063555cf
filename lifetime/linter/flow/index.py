"""The definitions of one file by name, and where its attributes are filled: one walk, linear in the file."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property

from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.survey import survey
from lifetime.linter.module import Function, Module

WEAK = re.compile(r"\b(\w+)\s*(?::[^=\n]*)?=\s*(?:weakref\.)?Weak(?:Set|ValueDictionary)\b")


@dataclass
class Index:
    """What a file defines at its top, what it imports, and which functions touch what."""

    module: Module
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Local name to (module as written, with leading dots; name in it, empty for a module)."""
    variables: set[str] = field(default_factory=set)
    """Other names that are assigned at the top of the file."""

    @cached_property
    def weak(self) -> set[str]:
        """Names of containers that keep nothing alive."""
        return set(WEAK.findall(self.module.source)) if "Weak" in self.module.source else set()

    @cached_property
    def derived(self) -> dict[str, list[ast.ClassDef]]:
        """Classes with methods by the names of their bases."""
        found: dict[str, list[ast.ClassDef]] = {}
        for cls in dict.fromkeys(t.owner for t in survey(self.module).values() if t.owner is not None):
            for base in cls.bases:
                found.setdefault(last_name(base), []).append(cls)
        return found

    @cached_property
    def fillers(self) -> dict[tuple[ast.ClassDef | None, str], list[Function]]:
        """The functions that store into an attribute, or into a container it holds, by class (None: any) and by name."""
        found: dict[tuple[ast.ClassDef | None, str], list[Function]] = {}
        for function, traits in survey(self.module).items():
            for name in traits.fills:
                for cls in {traits.owner, None}:
                    found.setdefault((cls, name), []).append(function)
        return found


def index(module: Module) -> Index:
    found = module.memo.get("index")
    if not isinstance(found, Index):
        found = module.memo["index"] = _build(module)
    return found


def _build(module: Module) -> Index:
    found = Index(module)
    for node in module.tree.body:
        _define(found, node)
    return found


def _define(found: Index, node: ast.stmt) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found.functions[node.name] = node
    elif isinstance(node, ast.ClassDef):
        found.classes[node.name] = node
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        found.imports.update(imported(node))
    elif isinstance(node, (ast.If, ast.Try)):
        for inner in [*node.body, *node.orelse, *(s for h in getattr(node, "handlers", []) for s in h.body)]:
            _define(found, inner)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found.variables.update(filter(None, (last_name(t) for t in targets if isinstance(t, ast.Name))))


def imported(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    """Local name to what it stands for, as `Index.imports` keeps it."""
    if isinstance(node, ast.Import):
        return {(a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0], "") for a in node.names}
    source = "." * node.level + (node.module or "")
    return {a.asname or a.name: (source, a.name) for a in node.names}

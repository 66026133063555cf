"""Helpers that are imported by name, found on disk. What was read is recorded: a finding depends on it."""

from __future__ import annotations

import ast
import os
import re
from functools import lru_cache

from lifetime.linter.flow.index import index
from lifetime.linter.flow.names import INTERESTING
from lifetime.linter.module import Function, Module
from lifetime.linter.regular import opened

DEPTH = 3
"""Re-exports that are followed: a helper is mostly one `__init__` away."""


def resolve(module: Module, source: str, name: str, depth: int = DEPTH) -> tuple[Module, Function | ast.ClassDef] | None:
    """The function or class that `from source import name` in `module` stands for; None where it cannot be read."""
    if depth == 0 or not module.file or not name:
        return None
    file = locate(module.file, source)
    other = load(file, name) if file else None
    if other is None:
        return None
    module.loads.add(other.file)
    names = index(other)
    found = names.functions.get(name) or names.classes.get(name)
    if found is not None:
        return other, found
    further = names.imports.get(name)
    onward = resolve(other, *further, depth - 1) if further else None
    module.loads.update(other.loads)
    return onward


def locate(file: str, source: str) -> str | None:
    """The file that holds module `source`, as an import in `file` sees it."""
    folder = os.path.dirname(os.path.abspath(file))
    dots = len(source) - len(source.lstrip("."))
    parts = [p for p in source[dots:].split(".") if p]
    if dots:
        for _ in range(dots - 1):
            folder = os.path.dirname(folder)
        return _module_file(folder, parts)
    while True:
        if found := _module_file(folder, parts):
            return found
        parent = os.path.dirname(folder)
        if parent == folder or not _inside_project(folder):
            return None
        folder = parent


def _inside_project(folder: str) -> bool:
    """Imports are looked for up to the first folder that is no package and beyond a source root of that name."""
    return os.path.exists(os.path.join(folder, "__init__.py")) or os.path.basename(folder) in {"src", "lib", "python"}


def _module_file(folder: str, parts: list[str]) -> str | None:
    base = os.path.join(folder, *parts)
    for candidate in (base + ".py", os.path.join(base, "__init__.py")):
        if parts and os.path.isfile(candidate):
            return candidate
    candidate = os.path.join(folder, "__init__.py")
    return candidate if not parts and os.path.isfile(candidate) else None


def load(file: str, name: str) -> Module | None:
    """The parsed file, if it says `name` and deals with gradients at all; None when it cannot be read or parsed."""
    try:
        stamp = os.stat(file).st_mtime_ns
    except OSError:
        return None
    text = _text(file, stamp)
    return _parsed(file, stamp) if INTERESTING.search(text) and re.search(rf"\b{re.escape(name)}\b", text) else None


@lru_cache(maxsize=256)
def _text(file: str, stamp: int) -> str:
    try:
        with open(file, encoding="utf-8", opener=opened) as handle:
            return handle.read()
    except (OSError, UnicodeDecodeError):
        return ""


@lru_cache(maxsize=128)
def _parsed(file: str, stamp: int) -> Module | None:
    text = _text(file, stamp)
    try:
        return Module(path=file, source=text, tree=ast.parse(text), file=file)
    except (SyntaxError, ValueError, RecursionError):
        return None


def locate_module(source: str, name: str) -> str:
    """The module that `import source` or `from source import name` stands for."""
    if not name:
        return source
    return f"{source}{name}" if source.endswith(".") else f"{source}.{name}"

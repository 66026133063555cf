"""Modules with findings are loaded from their rewritten tree; what was decided about a module is cached by its content."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import marshal
import os
import sys
from collections.abc import Sequence
from dataclasses import astuple, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import lifetime
from lifetime.errors import LifetimeError
from lifetime.files import write_whole
from lifetime.heap.model import Gap
from lifetime.linter import gate
from lifetime.tracer.clean import Clean
from lifetime.tracer.spots import CODES, Spot, instrument, shown

ONLY_AST = 0x400


class SiteLoader(SourceFileLoader):
    """The normal loader but for the code, which hands watched expressions over. Source, file name and lines are unchanged."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class Rewriter:
    """Decides module by module. `spots` collects what is watched, by key; `gaps` what lint could not read."""

    def __init__(self, only: Sequence[str] = ()) -> None:
        self.only = tuple(only)
        self.spots: dict[str, Spot] = {}
        self.gaps: list[Gap] = []
        self.clean = Clean(_tool())

    def __call__(self, name: str, file: str) -> SiteLoader | None:
        """The loader for a module with findings, None where the normal one is right."""
        try:
            source = Path(file).read_bytes()
        except OSError:
            return None  # the normal loader has the words for it
        spots, code = (_cached(file, source) or self._lint(file, source)) if gate.hits(source, CODES) else ((), None)
        if not spots and not any(gap.where == shown(file) for gap in self.gaps):
            self.clean.add(file)
        self.add(spots)
        watched = any(spot.key in self.spots for spot in spots)
        return SiteLoader(name, file, code) if code is not None and watched else None

    def rewrite(self, tree: ast.Module, source: bytes, file: str) -> tuple[Spot, ...]:
        """All sites of `tree`, which from now on watches them."""
        try:
            spots = instrument(tree, source, file)
        except Exception as error:  # whatever is wrong with lint must not become the program's failure
            self.gaps.append(Gap(shown(file), f"not searched for sites: {getattr(error, 'message', repr(error))}"))
            return ()
        self.add(spots)
        return spots

    def add(self, spots: Sequence[Spot]) -> None:
        wanted = (spot for spot in spots if not self.only or any(_names(site, spot) for site in self.only))
        self.spots.update((spot.key, spot) for spot in wanted)

    def unmet(self) -> list[Gap]:
        """Sites that were asked for and are none."""
        missing = [site for site in self.only if not any(_names(site, spot) for spot in self.spots.values())]
        return [Gap(site, "lint finds nothing to watch there, or its module was never imported") for site in missing]

    def _lint(self, file: str, source: bytes) -> tuple[tuple[Spot, ...], CodeType | None]:
        try:
            tree = compile(source, file, "exec", ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError):
            return (), None  # the normal loader has the words for this too
        spots = self.rewrite(tree, source, file)
        if not spots:
            return (), None
        code = compile(tree, file, "exec", dont_inherit=True)
        _store(file, source, spots, code)
        return spots, code


def _names(site: str, spot: Spot) -> bool:
    """`site` is PATH:LINE of `spot`; the path may be as lint prints it, absolute, or a tail of it."""
    name, _, line = site.rpartition(":")
    tail = "/" + name.removeprefix("./")
    same_file = name == spot.path or os.path.abspath(name) == spot.file or spot.file.endswith(tail)
    return same_file and line.isdecimal() and spot.line <= int(line) <= spot.end_line


def _cached(file: str, source: bytes) -> tuple[tuple[Spot, ...], CodeType] | None:
    try:
        digest, rows, code = marshal.loads(Path(_cache_file(file)).read_bytes())
        if digest != _digest(source):
            return None
        return tuple(replace(Spot(*row), path=shown(file)) for row in rows), code
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _store(file: str, source: bytes, spots: Sequence[Spot], code: CodeType) -> None:
    if sys.dont_write_bytecode:
        return
    cache = _cache_file(file)
    try:
        os.makedirs(os.path.dirname(cache), exist_ok=True)
        write_whole(cache, marshal.dumps((_digest(source), [astuple(spot) for spot in spots], code)))
    except (OSError, LifetimeError):
        pass  # a folder that cannot be written costs the next run some time, no more


def _cache_file(file: str) -> str:
    return importlib.util.cache_from_source(file).removesuffix(".pyc") + ".lifetime.pyc"


def _digest(source: bytes) -> bytes:
    return hashlib.sha256(_tool() + source).digest()


@functools.cache
def _tool() -> bytes:
    """Which rules judged: the version, and in a checkout the state of their files."""
    files = [entry for folder in _rule_folders() for entry in os.scandir(folder) if entry.name.endswith(".py")]
    states = sorted((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in files)
    return hashlib.sha256(repr((lifetime.__version__, sys.version, states)).encode()).digest()


def _rule_folders() -> list[str]:
    linter = Path(gate.__file__).parent
    rules = importlib.util.find_spec("lifetime.rules")
    inner = [str(folder) for folder in linter.rglob("*") if folder.is_dir() and folder.name != "__pycache__"]
    return [str(linter), *inner, *(rules.submodule_search_locations or () if rules else ())]

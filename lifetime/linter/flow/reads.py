"""Every `.grad` read of a file or of a package, grouped by the function around it: made once, however many findings ask."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from lifetime.linter.flow.names import last_name
from lifetime.linter.flow.survey import MODULES
from lifetime.linter.gate import is_test_path
from lifetime.linter.module import Module
from lifetime.linter.regular import opened

READ = re.compile(r"([\w.\[\]]*)\.grad\b(?!\s*(?:=[^=]|\())")
CODE = re.compile(r"^[^#\"']*")
WORD = re.compile(r"\w+")
PAIR = re.compile(r"\w+\.\w+")
LARGEST = 5_000
"""Files of a package that are looked through."""


@dataclass(frozen=True)
class Reader:
    """A `.grad` read outside the harvest."""

    path: str
    line: int
    may_alias: bool
    why: str


@dataclass(eq=False)
class Group:
    """The reads of one function. `mentioned` are its names and attributes (`x`, `self.x`), `related` classes it may deal with."""

    path: str
    name: str
    mentioned: frozenset[str]
    related: frozenset[str]
    reads: list[tuple[int, str]] = field(default_factory=list)
    """Line, and what `.grad` is read from."""
    function: ast.AST | None = None
    judged: dict[tuple[str, frozenset[str]], tuple[Reader, ...]] = field(default_factory=dict, repr=False)
    """Its reads as readers of leaves that escape in a certain way from certain classes."""

    def touches(self, place: str, owner: frozenset[str]) -> bool:
        """Whether it uses `self.x` or `ctx.x` of a class of `owner`; `node.x` may be anybody's."""
        attribute = place.rpartition(".")[2]
        if attribute == place:
            return place in self.mentioned
        owners = {m.partition(".")[0] for m in self.mentioned if m.endswith(f".{attribute}")}
        return bool(owners - {"self", "cls", "ctx"} if owner.isdisjoint(self.related) else owners)


@dataclass
class Reads:
    groups: list[Group] = field(default_factory=list)
    by_word: dict[str, list[Group]] = field(default_factory=dict)
    """Groups by the names and attributes they mention."""

    @classmethod
    def of(cls, groups: Iterable[Group]) -> Reads:
        made = cls(list(groups))
        for group in made.groups:
            for word in {m.rpartition(".")[2] for m in group.mentioned} | group.related:
                made.by_word.setdefault(word, []).append(group)
        return made


def file_reads(module: Module) -> Reads:
    found = module.memo.get("reads")
    if not isinstance(found, Reads):
        found = module.memo["reads"] = Reads.of(_in_file(module))
    return found


def _in_file(module: Module) -> Iterable[Group]:
    groups: dict[ast.AST | None, Group] = {}
    for node in module.nodes:
        if not (isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)):
            continue
        around = module.parents.get(node)
        if last_name(node.value) in MODULES or (isinstance(around, ast.Call) and around.func is node):
            continue
        function = module.enclosing_function(node)
        if function not in groups:
            groups[function] = _group(module, node, function)
        groups[function].reads.append((node.lineno, ast.unparse(node.value)))
    return groups.values()


def _group(module: Module, node: ast.AST, function: ast.AST | None) -> Group:
    nodes = list(ast.walk(function)) if function else []
    pairs = {f"{last_name(n.value)}.{n.attr}" for n in nodes if isinstance(n, ast.Attribute)}
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    cls = module.enclosing_class(node)
    related = {cls.name, *map(last_name, cls.bases)} if cls else set()
    return Group(module.path, module.qualified(node) or "module level", frozenset(pairs | names), frozenset(related), [], function)


def package(file: str) -> str:
    """The outermost package folder that holds `file`; empty where it is in none."""
    folder, found = os.path.dirname(os.path.abspath(file)), ""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        found, folder = folder, os.path.dirname(folder)
    return found


@lru_cache(maxsize=8)
def package_reads(root: str) -> Reads:
    """The reads of a package on disk, tests left out; found by text, because parsing every file would cost seconds."""
    return Reads.of(group for file in _files(root) for group in _in_text(file))


def _files(root: str) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".py")]
        if len(found) > LARGEST:
            break
    return [f for f in found if not is_test_path(os.path.relpath(f, root))]


def _in_text(file: str) -> Iterator[Group]:
    try:
        with open(file, "rb", opener=opened) as handle:
            data = handle.read()
    except OSError:
        return
    if b".grad" not in data:
        return
    text = data.decode(errors="replace")
    lines, words = text.splitlines(), frozenset(WORD.findall(text))
    group, end = None, 0
    for number, line in enumerate(lines):
        code = CODE.match(line) if ".grad" in line else None
        bases = [m[1] for m in READ.finditer(code[0]) if m[1].rpartition(".")[2] not in MODULES] if code else []
        if bases and (group is None or number >= end):
            if group is not None:
                yield group
            start, end = _extent(lines, number)
            body = "\n".join(lines[start:end])
            mentioned = frozenset([*WORD.findall(body), *PAIR.findall(body)])
            group = Group(file, os.path.basename(file), mentioned, words)
        if group is not None:
            group.reads += [(number + 1, base) for base in bases]
    if group is not None:
        yield group


def _extent(lines: list[str], number: int) -> tuple[int, int]:
    """First and last line of the function that holds line `number`, read off the indentation."""
    start, inner = number, _indent(lines[number])
    while start > 0 and not (lines[start].lstrip().startswith(("def ", "async def ")) and _indent(lines[start]) < inner):
        start -= 1
    end, outer = number + 1, _indent(lines[start])
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > outer):
        end += 1
    return start, end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

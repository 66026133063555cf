"""Who else reads `.grad`, and whether it may be that of the leaves a release would clear."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak
from lifetime.linter.flow.names import WEIGHT, is_test_path, last_name
from lifetime.linter.flow.values import Key, Kind
from lifetime.linter.module import Module

READ = re.compile(r"([\w.\[\]]*)\.grad\b(?!\s*(?:=[^=]|\())")
WORD = re.compile(r"\w+")
PAIR = re.compile(r"\w+\.\w+")
CODE = re.compile(r"^[^#\"']*")
MODULES = {"autograd", "nn"}
LARGEST = 5_000
"""Files of a package that are looked through."""


@dataclass(frozen=True)
class Reader:
    """A `.grad` read outside the harvest."""

    path: str
    line: int
    may_alias: bool
    why: str


def readers(module: Module, leak: Leak) -> list[Reader]:
    """Every other `.grad` read in the function, the class, the file and the package on disk, by path and line."""
    how = escape(leak)
    found = {r.line: r for r in _in_file(module, leak, how)}
    found.update({r.line: r for r in _in_walk(module, leak)})
    found.pop(leak.node.lineno, None)
    return [*sorted(found.values(), key=lambda r: r.line), *_in_package(module, how, module.enclosing_class(leak.node))]


def aliasing(module: Module, leak: Leak) -> list[Reader]:
    return [r for r in readers(module, leak) if r.may_alias]


def _in_walk(module: Module, leak: Leak) -> Iterator[Reader]:
    """Reads that the walk itself came by: it knows their tensors."""
    events, home = leak.walk.machine.events, module.enclosing_function(leak.node)
    for node, keys in events.reads.items():
        if events.home.get(node) is not module or node is leak.node or not isinstance(node, ast.expr):
            continue
        same = any(k.meets(mine) for k in keys for mine in leak.keys)
        function = module.enclosing_function(node)
        if same and function is not home:
            yield Reader(module.path, node.lineno, True, f"{module.qualified(node)}: the same leaves")
        elif same and node.lineno > leak.node.lineno and node not in events.late:
            yield Reader(module.path, node.lineno, True, "the same leaves, later in this function")
        elif same:
            yield Reader(module.path, node.lineno, False, "the same leaves, but before the release")
        else:
            yield Reader(module.path, node.lineno, False, _other(keys))


def _other(keys: frozenset[Key]) -> str:
    kinds = {k.origin.kind for k in keys}
    if Kind.WEIGHT in kinds:
        return "gradients of parameters"
    made = sorted(getattr(k.origin.node, "lineno", 0) for k in keys if k.origin.kind is Kind.DETACHED)
    return f"other leaves, made in line {made[0]}" if made else "another tensor of the same function"


def _in_file(module: Module, leak: Leak, how: str) -> Iterator[Reader]:
    home = module.enclosing_function(leak.node)
    owner = module.enclosing_class(leak.node)
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)):
            continue
        around = module.parents.get(node)
        if last_name(node.value) in MODULES or (isinstance(around, ast.Call) and around.func is node):
            continue
        function = module.enclosing_function(node)
        if function is home:
            yield Reader(module.path, node.lineno, False, "another tensor of the same function")
            continue
        cls = module.enclosing_class(node)
        related = owner is not None and cls is not None and _related(owner, cls)
        place = Place(module.qualified(node) or "module level", related, _mentioned(function))
        yield Reader(module.path, node.lineno, *_judge(how, ast.unparse(node.value), place))


def _related(a: ast.ClassDef, b: ast.ClassDef) -> bool:
    return a is b or a.name in map(last_name, b.bases) or b.name in map(last_name, a.bases)


def _mentioned(function: ast.AST | None) -> frozenset[str]:
    nodes = list(ast.walk(function)) if function else []
    pairs = {f"{last_name(n.value)}.{n.attr}" for n in nodes if isinstance(n, ast.Attribute)}
    return frozenset(pairs | {n.id for n in nodes if isinstance(n, ast.Name)})


@dataclass(frozen=True)
class Place:
    """Where a read stands: whether in a class related to that of the leaves, and what is mentioned around it (`x`, `self.x`)."""

    name: str
    related: bool
    mentioned: frozenset[str]

    def touches(self, how: str) -> bool:
        """`self.x` and `ctx.x` are those of the leaves in a related class only; `node.x` may be anywhere."""
        attribute = how.rpartition(".")[2]
        if attribute == how:
            return how in self.mentioned
        owners = {m.partition(".")[0] for m in self.mentioned if m.endswith(f".{attribute}")}
        return bool(owners if self.related else owners - {"self", "cls", "ctx"})


def _judge(how: str, base: str, place: Place) -> tuple[bool, str]:
    """Whether a read of `base` at `place` may see leaves that escape by `how`, and why."""
    if WEIGHT.search(base.rpartition(".")[2].split("[")[0]) or base in {"p", "param"}:
        return False, f"{place.name}: gradients of parameters"
    if how == CALLEE:
        return False, f"{place.name}: tensors of its own; these leaves never leave their function"
    if how == CALLER:
        if place.related:
            return True, f"{place.name}: may be handed the same tensor"
        return False, f"{place.name}: tensors of its own"
    if how == "saved_tensors" and not place.related:
        return False, f"{place.name}: the tensors of its own ctx"
    if place.touches(how):
        return True, f"{place.name}: uses `{how}`, where the leaves are kept"
    return False, f"{place.name}: does not touch `{how}`, where the leaves are kept"


def _in_package(module: Module, how: str, owner: ast.ClassDef | None) -> Iterator[Reader]:
    root = package(module.file) if module.file else ""
    for read in package_reads(root) if root else ():
        if not os.path.samefile(read.file, module.file):
            module.loads.add(read.file)
            place = Place(os.path.basename(read.file), owner is not None and owner.name in read.words, read.mentioned)
            yield Reader(shown(read.file), read.line, *_judge(how, read.base, place))


def shown(file: str) -> str:
    """`file` as findings show paths: relative to the working directory, absolute outside it."""
    near = os.path.relpath(file)
    return (file if near.startswith("..") else near).replace(os.sep, "/")


def package(file: str) -> str:
    """The outermost package folder that holds `file`; empty where it is in none."""
    folder, found = os.path.dirname(os.path.abspath(file)), ""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        found, folder = folder, os.path.dirname(folder)
    return found


@dataclass(frozen=True)
class Read:
    """A line of a package that reads `.grad` of `base`; `words` are those of its file."""

    file: str
    line: int
    base: str
    mentioned: frozenset[str]
    words: frozenset[str]


@lru_cache(maxsize=8)
def package_reads(root: str) -> tuple[Read, ...]:
    """Every `.grad` read in the package, tests left out; found by text, because parsing every file would cost seconds."""
    return tuple(read for file in _files(root) for read in _reads(file))


def _reads(file: str) -> Iterator[Read]:
    try:
        with open(file, "rb") as handle:
            data = handle.read()
    except OSError:
        return
    if b".grad" not in data:
        return
    text = data.decode(errors="replace")
    lines, words = text.splitlines(), frozenset(WORD.findall(text))
    for number, line in enumerate(lines):
        code = CODE.match(line) if ".grad" in line else None
        for match in READ.finditer(code[0]) if code else ():
            if match[1].rpartition(".")[2] not in MODULES:
                yield Read(file, number + 1, match[1], _around(lines, number), words)


def _around(lines: list[str], number: int) -> frozenset[str]:
    """What the function that holds line `number` mentions; its extent is read off the indentation."""
    start, inner = number, _indent(lines[number])
    while start > 0 and not (lines[start].lstrip().startswith(("def ", "async def ")) and _indent(lines[start]) < inner):
        start -= 1
    end, outer = number + 1, _indent(lines[start])
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > outer):
        end += 1
    text = "\n".join(lines[start:end])
    return frozenset([*WORD.findall(text), *PAIR.findall(text)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _files(root: str) -> list[str]:
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".py")]
        if len(found) > LARGEST:
            break
    return [f for f in found if not is_test_path(os.path.relpath(f, root))]

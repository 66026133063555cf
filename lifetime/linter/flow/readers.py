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
    return [*sorted(found.values(), key=lambda r: r.line), *_in_package(module, how)]


def aliasing(module: Module, leak: Leak) -> list[Reader]:
    return [r for r in readers(module, leak) if r.may_alias]


def _in_walk(module: Module, leak: Leak) -> Iterator[Reader]:
    """Reads that the walk itself came by: it knows their tensors."""
    events = leak.walk.machine.events
    for node, keys in events.reads.items():
        if events.home.get(node) is not module or node is leak.node or not isinstance(node, ast.expr):
            continue
        same = any(k.meets(mine) for k in keys for mine in leak.keys)
        later = node.lineno > leak.node.lineno
        if same and later and node not in events.late:
            yield Reader(module.path, node.lineno, True, "the same leaves, later in this backward")
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
        where = module.qualified(node) or "module level"
        inside = owner is not None and module.enclosing_class(node) is owner
        may, why = _judge(how, ast.unparse(node.value), inside, _mentions(function, how), where)
        yield Reader(module.path, node.lineno, may, why)


def _mentions(node: ast.AST | None, how: str) -> bool:
    name = how.rpartition(".")[2]
    return node is not None and any(last_name(n) == name for n in ast.walk(node) if isinstance(n, (ast.Attribute, ast.Name)))


def _judge(how: str, base: str, inside: bool, mentions: bool, where: str) -> tuple[bool, str]:
    if WEIGHT.search(base.rpartition(".")[2].split("[")[0]) or base in {"p", "param"}:
        return False, f"{where}: gradients of parameters"
    if how == CALLEE:
        return False, f"{where}: tensors of its own; these leaves never leave their function"
    if how == CALLER:
        return (True, f"{where}: may be handed the same tensor") if inside else (False, f"{where}: tensors of its own")
    if mentions:
        return True, f"{where}: uses `{how}`, where the leaves are kept"
    return False, f"{where}: does not touch `{how}`, where the leaves are kept"


def _in_package(module: Module, how: str) -> Iterator[Reader]:
    root = package(module.file) if module.file else ""
    if not root:
        return
    base = os.path.dirname(root)
    name = how.rpartition(".")[2]
    for file, line, text, attributes in package_reads(root):
        if os.path.samefile(file, module.file):
            continue
        module.loads.add(file)
        kept = how not in {CALLEE, CALLER, "saved_tensors"} and name in attributes
        may, why = _judge(how, text, False, kept, "another file")
        yield Reader(os.path.relpath(file, base).replace(os.sep, "/"), line, may, why)


def package(file: str) -> str:
    """The outermost package folder that holds `file`; empty where it is in none."""
    folder, found = os.path.dirname(os.path.abspath(file)), ""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        found, folder = folder, os.path.dirname(folder)
    return found


@lru_cache(maxsize=8)
def package_reads(root: str) -> tuple[tuple[str, int, str, frozenset[str]], ...]:
    """Every line of the package that reads `.grad`: file, line, what it is read from, attribute names of that file. Tests left out."""
    found: list[tuple[str, int, str, frozenset[str]]] = []
    for file in _files(root):
        try:
            with open(file, "rb") as handle:
                data = handle.read()
        except OSError:
            continue
        if b".grad" not in data:
            continue
        text = data.decode(errors="replace")
        attributes = frozenset(re.findall(r"\.(\w+)", text))
        for number, line in enumerate(text.splitlines(), 1):
            code = CODE.match(line) if ".grad" in line else None
            for match in READ.finditer(code[0]) if code else ():
                if match[1].rpartition(".")[2] not in MODULES:
                    found.append((file, number, match[1], attributes))
    return tuple(found)


def _files(root: str) -> list[str]:
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(".py")]
        if len(found) > LARGEST:
            break
    return [f for f in found if not is_test_path(os.path.relpath(f, root))]

"""Who else reads `.grad`, and whether it may be that of the leaves a release would clear."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak
from lifetime.linter.flow.names import WEIGHT, last_name
from lifetime.linter.flow.reads import Group, Reader, Reads, file_reads, package, package_reads
from lifetime.linter.flow.values import Keys, Kind
from lifetime.linter.module import Module

LISTED = 20
"""Reads elsewhere that cannot see the leaves and are listed all the same, in the file and in the package each."""


def readers(module: Module, leak: Leak) -> list[Reader]:
    """Other `.grad` reads by path and line, with the reason: all that may see the leaves, and those that cannot up to a limit."""
    known = module.memo.setdefault("readers", {})
    assert isinstance(known, dict)
    if leak.node not in known:
        known[leak.node] = _readers(module, leak)
    found: list[Reader] = known[leak.node]
    return found


def _readers(module: Module, leak: Leak) -> list[Reader]:
    how, owner = escape(leak), module.enclosing_class(leak.node)
    home = module.enclosing_function(leak.node)
    name = frozenset({owner.name, *map(last_name, owner.bases)} if owner else ())
    near = {r.line: r for r in _elsewhere(file_reads(module), how, name, home)}
    near.update({r.line: r for r in _in_walk(module, leak)})
    near.pop(leak.node.lineno, None)
    return [*sorted(near.values(), key=lambda r: r.line), *_in_package(module, how, name)]


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


def _other(keys: Keys) -> str:
    kinds = {k.origin.kind for k in keys}
    if Kind.WEIGHT in kinds:
        return "gradients of parameters"
    made = sorted(getattr(k.origin.node, "lineno", 0) for k in keys if k.origin.kind is Kind.DETACHED)
    return f"other leaves, made in line {made[0]}" if made else "another tensor of the same function"


def _elsewhere(reads: Reads, how: str, owner: frozenset[str], home: ast.AST | None) -> Iterator[Reader]:
    """First what may see the leaves, then what cannot, up to the limit."""
    words = [] if how == CALLEE else sorted(owner) if how == CALLER else [how.rpartition(".")[2]]
    suspects = dict.fromkeys(group for word in words for group in reads.by_word.get(word, ()))
    listed = [reader for group in suspects if group.function is not home or home is None for reader in _judged(group, how, owner)]
    yield from (r for r in listed if r.may_alias)
    left = LISTED
    for group in reads.groups:
        for reader in _judged(group, how, owner) if group.function is not home or home is None else ():
            if left and not reader.may_alias:
                left -= 1
                yield reader
        if not left:
            return


def _judged(group: Group, how: str, owner: frozenset[str]) -> tuple[Reader, ...]:
    """The very same objects for every finding that asks: thousands may."""
    owner = frozenset() if how == CALLEE else owner
    known = group.judged.get((how, owner))
    if known is None:
        known = tuple(Reader(group.path, line, *_judge(group, base, how, owner)) for line, base in group.reads)
        group.judged[how, owner] = known
    return known


def _judge(group: Group, base: str, how: str, owner: frozenset[str]) -> tuple[bool, str]:
    """Whether a read of `base` may see leaves of a backward in a class of `owner` that escape by `how`, and why."""
    if WEIGHT.search(base.rpartition(".")[2].split("[")[0]) or base in {"p", "param"}:
        return False, f"{group.name}: gradients of parameters"
    if how == CALLEE:
        return False, f"{group.name}: tensors of its own; these leaves never leave their function"
    if how == CALLER:
        if group.function is not None and not owner.isdisjoint(group.related):
            return True, f"{group.name}: may be handed the same tensor"
        return False, f"{group.name}: tensors of its own"
    if how == "saved_tensors" and (group.function is None or owner.isdisjoint(group.related)):
        return False, f"{group.name}: the tensors of its own ctx"
    if group.touches(how, owner):
        return True, f"{group.name}: uses `{how}`, where the leaves are kept"
    return False, f"{group.name}: does not touch `{how}`, where the leaves are kept"


def _in_package(module: Module, how: str, owner: frozenset[str]) -> Iterator[Reader]:
    root = package(module.file) if module.file else ""
    if not root:
        return
    own = os.path.realpath(module.file)
    for reader in _elsewhere(package_reads(root), how, owner, None):
        if os.path.realpath(reader.path) != own:
            module.loads.add(reader.path)
            yield Reader(shown(reader.path), reader.line, reader.may_alias, reader.why)


def shown(file: str) -> str:
    """`file` as findings show paths: relative to the working directory, absolute outside it."""
    near = os.path.relpath(file)
    return (file if near.startswith("..") else near).replace(os.sep, "/")

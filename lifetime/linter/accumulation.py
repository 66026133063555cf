"""Places in a loop where a value is added to something that outlives the turn: `total += x`, `xs.append(x)`, `a = b * a + x`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.linter.blocks import Loop, unconditional
from lifetime.linter.imports import dotted
from lifetime.linter.module import Function
from lifetime.linter.statements import children

JOINING = {"add", "sub", "cat", "concat", "hstack", "vstack"}
GROWING = {"append", "appendleft", "extend", "add_"}
AnyLoop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class Accumulation:
    """`added` joins what the dotted name `target` holds, once a turn of `loop`; `node` is the statement or call that does it."""

    node: ast.stmt | ast.Call
    target: str
    added: ast.expr
    loop: AnyLoop
    total: ast.expr | None = None
    """What is assigned to `target`, where `node` is an assignment."""


def accumulations(scope: Function | ast.Module) -> list[Accumulation]:
    """Everything that grows in a loop of `scope`, unless its turn begins or ends with an empty one."""
    found: list[Accumulation] = []
    started: dict[AnyLoop, set[str]] = {}
    stack: list[tuple[ast.AST, AnyLoop | None]] = [(s, None) for s in reversed(scope.body)]
    while stack:
        node, loop = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if loop is not None:
            found.extend(a for a in _of(node, loop) if not _is_plain(a.added) and a.target not in started[loop])
        inner = loop
        if isinstance(node, Loop):
            inner, started[node] = node, _started_in(node)
        stack.extend((child, inner) for child in children(node))
    return found


def _of(node: ast.AST, loop: AnyLoop) -> Iterator[Accumulation]:
    match node:
        case ast.AugAssign(op=ast.Add() | ast.Sub(), target=target, value=added):
            if name := _base(target):
                yield Accumulation(node, name, added, loop)
        case ast.Assign(targets=[ast.Subscript(slice=key) as target], value=added) if _names(key) & _names(_turn(loop)):
            if name := _base(target):
                yield Accumulation(node, name, added, loop)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=totals)) if len(targets) == len(totals):
            for target, total in zip(targets, totals, strict=True):
                yield from _added(node, target, total, loop)
        case ast.Assign(targets=[target], value=total):
            yield from _added(node, target, total, loop)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=method), args=[*_, added]) as call) if method in GROWING:
            if name := _base(target):
                yield Accumulation(call, name, added, loop)


def _added(node: ast.stmt, target: ast.expr, total: ast.expr, loop: AnyLoop) -> Iterator[Accumulation]:
    """`a = b * a + x`, `a = torch.add(a, x)`, `a = [*a, x]`, `a = x if a is None else a + x`."""
    name = _base(target) if isinstance(total, (ast.BinOp, ast.IfExp, ast.Call, ast.List)) else None
    terms = list(_terms(total)) if name else []
    others = [t for t in terms if _drawn(t) != name]
    if name and len(others) < len(terms):
        yield from (Accumulation(node, name, term, loop, total) for term in others)


def _drawn(term: ast.expr) -> str | None:
    """`xs` for `xs`, `xs["k"]` and `xs.get("k", 0)`."""
    match term:
        case ast.Call(func=ast.Attribute(value=owner, attr="get")):
            return _base(owner)
    return _base(term)


def _is_plain(added: ast.expr) -> bool:
    """Whether a glance shows that `added` has no graph."""
    match added:
        case ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda():
            return True
        case ast.Call(func=ast.Attribute(attr="item" | "tolist" | "detach" | "numpy" | "format" | "size")):
            return True
        case ast.Call(func=ast.Name(id="float" | "int" | "len" | "str" | "repr" | "range" | "bool")):
            return True
        case ast.Attribute(attr="shape" | "dtype" | "device" | "data" | "grad"):
            return True
    return False


def _base(target: ast.expr) -> str | None:
    """`xs` for `xs`, `xs[k]` and `xs["k"]["l"]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return dotted(target)


def _terms(total: ast.expr) -> Iterator[ast.expr]:
    """The factors and summands of an arithmetic expression, also of one of two; the parts of what is put together."""
    stack: list[ast.expr] = [total]
    while stack:
        one = stack.pop()
        match one:
            case ast.BinOp():
                stack.extend([one.right, one.left])
            case ast.IfExp():
                stack.extend([one.orelse, one.body])
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args) if name in JOINING:
                stack.extend([*reversed(args), owner])
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                stack.extend(p.value if isinstance(p, ast.Starred) else p for p in reversed(parts))
            case _:
                yield one


def _turn(loop: AnyLoop) -> ast.expr | None:
    """What changes with each turn."""
    return None if isinstance(loop, ast.While) else loop.target


def _names(node: ast.AST | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node else set()


def _started_in(loop: AnyLoop) -> set[str]:
    """Names to which each turn of `loop` gives a new value that has nothing of the old one."""
    return _started(loop.body) | {name for t in _flat(_turn(loop)) if (name := dotted(t))}


def _started(block: list[ast.stmt]) -> set[str]:
    """Names that are made anew whenever `block` runs."""
    names: set[str | None] = set()
    for statement in unconditional(block):
        match statement:
            case ast.Assign(targets=targets, value=value):
                old = {dotted(n) for n in ast.walk(value) if isinstance(n, (ast.Name, ast.Attribute))}
                names |= {dotted(t) for whole in targets for t in _flat(whole)} - old
            case ast.AnnAssign(target=whole, value=ast.expr()):
                names.add(dotted(whole))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=whole, attr="clear"))):
                names.add(dotted(whole))
            case ast.Delete(targets=targets):
                names |= {_base(t) for t in targets}
            case ast.If(body=body, orelse=orelse) if orelse:
                names |= _started(body) & _started(orelse)
    return {name for name in names if name}


def _flat(target: ast.expr | None) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _flat(element)
    elif target is not None:
        yield target

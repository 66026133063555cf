"""The places of a module that the run should watch: what lint found there, and the tree in which they call `probe.watch`."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lifetime.files import HERE
from lifetime.linter import gate
from lifetime.linter.context import commented_harvests, context_hash
from lifetime.linter.model import Finding, Span
from lifetime.linter.module import Module
from lifetime.tracer.probe import ALIAS, MODULE

CODES = ("LT001", "LT004", "LT005", "LT006")
COMMENT_CODE = "LT003"
"""A release whose comment names its holder: the leaf itself is watched, its `.grad` is gone."""
GRADIENT_CODES = frozenset({"LT001", "LT005"})
"""Rules about a leaf's `.grad`: it counts only while there is one. The others are about the tensor itself."""
_HERE = Path(HERE)


@dataclass(frozen=True)
class Spot:
    """One finding, to be watched. `path` is as lint would print it, `file` is absolute, `key` names it in rewritten code."""

    key: str
    code: str
    path: str
    file: str
    line: int
    end_line: int
    function: str | None
    context: str = ""

    @property
    def of_gradient(self) -> bool:
        return self.code in GRADIENT_CODES


def instrument(tree: ast.Module, source: bytes, file: str) -> tuple[Spot, ...]:
    """Every finding's expression in `tree` is handed to `probe.watch`; no line number changes.

    The tree is as it was where nothing is returned.

    Raises:
        LifetimeError: lint cannot read or judge the source.
    """
    if not gate.hits(source, CODES):
        return ()
    from lifetime.linter import engine, loader  # only now: most programs have no module that gets here

    path = shown(file)
    text = loader.decode(source, path).source
    findings = [f for f in engine.check_source(text, path, file=file, select=CODES) if f.code in CODES]
    module = Module(path, text, tree, file)
    targets = [*(_found(f, module) for f in findings), *(_commented(node, module) for node in commented_harvests(module))]
    spots = tuple(spot for target in targets for spot in _install(target, module, file))
    if spots:
        _import_probe(tree)
    return spots


def shown(file: str) -> str:
    """`file` as lint prints it: relative to the working directory, absolute when outside it."""
    path = Path(os.path.normpath(os.path.join(HERE, file)))
    return path.relative_to(_HERE).as_posix() if path.is_relative_to(_HERE) else path.as_posix()


@dataclass(frozen=True)
class _Target:
    """A place to watch, worked out before the tree changes. `context` is the hash of what leads up to it."""

    code: str
    span: Span
    function: str | None
    nodes: tuple[ast.expr | ast.stmt, ...]
    context: str


def _found(finding: Finding, module: Module) -> _Target:
    nodes = tuple(_at(finding.span, module))
    return _Target(finding.code, finding.span, finding.function, nodes, _context(nodes, module))


def _commented(harvest: ast.Attribute, module: Module) -> _Target:
    """A harvest whose release names its holder: the run tells whether that one still holds the leaf."""
    return _Target(COMMENT_CODE, module.span(harvest), module.qualified(harvest), (harvest,), _context((harvest,), module))


def _context(nodes: tuple[ast.expr | ast.stmt, ...], module: Module) -> str:
    function = module.enclosing_function(nodes[0]) if nodes else None
    return context_hash(function) if function is not None else ""


def _install(target: _Target, module: Module, file: str) -> Iterator[Spot]:
    span = target.span
    key = f"{target.code} {file}:{span.start_line}:{span.start_column}"
    of_leaf = target.code in GRADIENT_CODES or target.code == COMMENT_CODE
    wrapped = [_wrap(node, key, module, of_leaf) for node in target.nodes]
    if any(wrapped):
        yield Spot(key, target.code, module.path, file, span.start_line, span.end_line, target.function, target.context)


def _at(span: Span, module: Module) -> list[ast.expr | ast.stmt]:
    """The outermost node with exactly this span."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.expr, ast.stmt)) and node.lineno == span.start_line and module.span(node) == span:
            return [node]
    return []


def _wrap(node: ast.expr | ast.stmt, key: str, module: Module, gradient: bool) -> bool:
    """Hand over the leaf whose `.grad` is read in `node`, or what is stored, returned or passed there."""
    if gradient:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr in {"grad", "_grad"} and isinstance(inner.ctx, ast.Load):
                inner.value = _watch(inner.value, key)
                return True
            if isinstance(inner, ast.Call) and _is_getattr_grad(inner):
                inner.args[0] = _watch(inner.args[0], key)
                return True
    holder = _statement(node, module)
    match holder:
        case ast.Assign() | ast.AugAssign():
            holder.value = _watch(holder.value, key)
        case (ast.AnnAssign(value=ast.expr()) | ast.Return(value=ast.expr())) as statement:
            statement.value = _watch(statement.value, key)  # type: ignore[arg-type]
        case ast.Expr(value=ast.Call(args=[*_, last]) as call):
            call.args[-1] = last if isinstance(last, ast.Starred) else _watch(last, key)
        case _:
            return False
    return True


def _is_getattr_grad(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value="grad"), *_]):
            return True
    return False


def _statement(node: ast.AST, module: Module) -> ast.AST:
    return next((n for n in [node, *module.ancestors(node)] if isinstance(n, ast.stmt)), node)


def _watch(value: ast.expr, key: str) -> ast.expr:
    function = ast.Attribute(ast.Name(ALIAS, ast.Load()), "watch", ast.Load())
    call = ast.Call(function, [ast.Constant(key), value], [])
    for node in (function.value, function, call.args[0], call):
        ast.copy_location(node, value)
    return call


def _import_probe(tree: ast.Module) -> None:
    """`import lifetime.tracer.probe as @lifetime`, under a name no program can write, after docstring and `__future__`."""
    statement = ast.Import([ast.alias(MODULE, ALIAS)])
    position = 0
    for position, first in enumerate([*tree.body, ast.Pass()]):
        is_text = position == 0 and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if not is_text and not (isinstance(first, ast.ImportFrom) and first.module == "__future__"):
            break
    line = tree.body[position].lineno if position < len(tree.body) else 1
    for node in ast.walk(statement):
        if isinstance(node, (ast.stmt, ast.alias)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    tree.body.insert(position, statement)

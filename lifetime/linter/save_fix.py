"""Moves tensors from ctx attributes to `save_for_backward`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.linter.autograd_function import AutogradFunction
from lifetime.linter.blocks import block_of, statement_of
from lifetime.linter.closures import bound_names, own_nodes, parameters
from lifetime.linter.ctx_stores import Stored
from lifetime.linter.model import Edit, Fix, Safety, Span
from lifetime.linter.module import Function, Module

REASON = "an input that is changed in place between forward and backward then raises, where the attribute gave its new value"


@dataclass(frozen=True)
class Move:
    """One attribute to move: `ctx.<attribute> = <source>` in forward, its reads in backward become `local`."""

    statement: ast.Assign
    source: str
    reads: tuple[ast.Attribute, ...]
    local: str
    is_output: bool


def save_for_backward(module: Module, function: AutogradFunction, found: list[Stored]) -> tuple[Fix | None, ast.expr | None]:
    """One fix for all attributes that can be moved, and the first of their stores; None where none can, or where what is saved
    already cannot be added to."""
    saving = _Saving(module, function)
    moves = {stored.target: m for stored in found if stored.is_bare and (m := saving.move(stored))}
    edits = saving.edits(list(moves.values())) if moves else ()
    if not edits:
        return None, None
    names = ", ".join(m.source for m in moves.values())
    is_safe = all(m.is_output for m in moves.values())
    fix = Fix(f"save {names} for backward", Safety.SAFE if is_safe else Safety.UNSAFE, edits, "" if is_safe else REASON)
    return fix, next(iter(moves))


class _Saving:
    def __init__(self, module: Module, function: AutogradFunction) -> None:
        assert function.backward is not None
        self.module = module
        self.function = function
        self.backward: Function = function.backward
        self.back_ctx = next(iter(parameters(self.backward)), "")
        self.calls = [n for n in ast.walk(function.node) if isinstance(n, ast.Attribute) and n.attr == "save_for_backward"]
        self.unpacks = [
            n for n in ast.walk(function.node) if isinstance(n, ast.Attribute) and n.attr in {"saved_tensors", "saved_variables"}
        ]
        self.taken = bound_names(self.backward) | {n.id for n in ast.walk(self.backward) if isinstance(n, ast.Name)}

    def move(self, stored: Stored) -> Move | None:
        statement = statement_of(self.module, stored.target)
        match statement:
            case ast.Assign(targets=[ast.Attribute()], value=ast.Name(id=source)) if statement in self.function.saver.body:
                pass
            case _:
                return None
        uses = [n for n in ast.walk(self.function.node) if isinstance(n, ast.Attribute) and n.attr == stored.attribute]
        reads = [n for n in ast.walk(self.backward) if n in uses and self.is_read(n)]
        if len(reads) != len(uses) - 1 or not reads or not self.is_steady(source, statement):
            return None
        wanted = (source, stored.attribute, f"saved_{stored.attribute}")
        local = next((n for n in wanted if n not in self.taken), None)
        if local is None:
            return None
        self.taken.add(local)
        return Move(statement, source, tuple(n for n in reads if isinstance(n, ast.Attribute)), local, stored.is_output)

    def is_read(self, node: ast.AST) -> bool:
        own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.back_ctx
        return own and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)

    def is_steady(self, source: str, statement: ast.stmt) -> bool:
        """Whether `source` is an input or a returned name of forward that has one value, which nothing changes in place."""
        saver = self.function.saver
        bindings = [n for n in own_nodes(saver) if isinstance(n, ast.Name) and n.id == source and isinstance(n.ctx, ast.Store)]
        is_input = source in parameters(saver) or (self.function.setup_context is not None and source in self.function.inputs)
        returned = {
            n.id
            for r in own_nodes(saver)
            if isinstance(r, ast.Return) and r.value
            for n in _elements(r.value)
            if isinstance(n, ast.Name)
        }
        single = not bindings if source in parameters(saver) else len(bindings) == 1 and bindings[0].lineno < statement.lineno
        return single and (is_input or source in returned) and not any(_changes(n, source) for n in own_nodes(saver))

    def edits(self, moves: list[Move]) -> tuple[Edit, ...]:
        names = [m.source for m in moves]
        if not self.calls and not self.unpacks:
            kept = moves[-1].statement
            call = f"{self.function.ctx}.save_for_backward({', '.join(names)})"
            into = [Edit(self.module.span(kept), call)]
            drop, unpack = moves[:-1], self.new_unpack(moves)
        else:
            into, unpack, drop = self.added(moves), self.longer_unpack(moves), moves
        removed = [self.without_line(m.statement) for m in drop]
        if not into or not unpack or any(edit is None for edit in removed):
            return ()
        reads = [Edit(self.module.span(n), m.local) for m in moves for n in m.reads]
        return (*into, *unpack, *(e for e in removed if e), *reads)

    def new_unpack(self, moves: list[Move]) -> list[Edit]:
        body = self.backward.body
        documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        first = body[1 if documented and len(body) > 1 else 0]
        before = self.module.lines[first.lineno - 1][: first.col_offset]
        if before.strip():
            return []
        targets = ", ".join(m.local for m in moves) if len(moves) > 1 else f"({moves[0].local},)"
        return [Edit(Span(first.lineno, 0, first.lineno, 0), f"{before}{targets} = {self.back_ctx}.saved_tensors\n")]

    def added(self, moves: list[Move]) -> list[Edit]:
        """The names added to the one call that saves already."""
        call = self.module.parents.get(self.calls[0]) if len(self.calls) == 1 else None
        statement = statement_of(self.module, call) if call else None
        if not isinstance(call, ast.Call) or statement not in self.function.saver.body or not call.args or call.keywords:
            return []
        late = any(m.is_output and m.statement.lineno > call.lineno for m in moves)
        if late or any(isinstance(a, ast.Starred) for a in call.args):
            return []
        end = self.module.span(call.args[-1])
        place = Span(end.end_line, end.end_column, end.end_line, end.end_column)
        return [Edit(place, "".join(f", {m.source}" for m in moves))]

    def longer_unpack(self, moves: list[Move]) -> list[Edit]:
        """The names added to the one statement that unpacks what was saved."""
        statement = statement_of(self.module, self.unpacks[0]) if len(self.unpacks) == 1 else None
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=elements) as target], value=ast.Attribute()) if statement in self.backward.body:
                pass
            case _:
                return []
        call = self.module.parents.get(self.calls[0])
        saved = call.args if isinstance(call, ast.Call) else []
        early = any(n.lineno <= statement.lineno for m in moves for n in m.reads)
        if early or len(saved) != len(elements) or not all(isinstance(e, ast.Name) for e in elements):
            return []
        names = [m.local for m in moves]
        if len(elements) == 1:
            return [Edit(self.module.span(target), ", ".join([self.module.text(elements[0]), *names]))]
        end = self.module.span(elements[-1])
        return [Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), "".join(f", {name}" for name in names))]

    def without_line(self, statement: ast.stmt) -> Edit | None:
        """Takes a statement away with its line; None where something else stands on it, a comment for one."""
        span = self.module.span(statement)
        alone = not self.module.lines[span.start_line - 1][: span.start_column].strip()
        rest = self.module.lines[span.end_line - 1][span.end_column :].strip()
        if not alone or rest or len(block_of(self.module, statement)) < 2:
            return None
        return Edit(Span(span.start_line, 0, span.end_line + 1, 0), "")


def _elements(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.Tuple):
        yield from value.elts
    else:
        yield value


def _changes(node: ast.AST, name: str) -> bool:
    match node:
        case ast.AugAssign(target=ast.Name(id=who)) | ast.AugAssign(target=ast.Subscript(value=ast.Name(id=who))):
            return who == name
        case ast.Assign(targets=targets):
            return any(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id == name for t in targets)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=who), attr=method)):
            return who == name and method.endswith("_") and not method.endswith("__")
        case ast.keyword(arg="out", value=ast.Name(id=who)):
            return who == name
    return False

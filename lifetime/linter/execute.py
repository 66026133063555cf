"""Walks the statements of one function (or of a file's top level) and tells what every value is and what happens to it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from lifetime.linter.calls import Calls
from lifetime.linter.imports import dotted
from lifetime.linter.state import Did, Env
from lifetime.linter.torch_names import ENABLE_GRAD, NO_GRAD
from lifetime.linter.values import Answer, How, Kind, Value

if sys.version_info >= (3, 11):
    TryStar = ast.TryStar
else:
    TryStar = ast.Try
TWICE = 2
"""Loops nested deeper than this run once: the second turn only shows what the first one left behind."""


class Execution(Calls):
    loops = 0
    falls = True
    """False once the current way has ended by return, raise, break or continue."""
    loop_exits: list[list[Env]] = []
    """For each loop around: the names as they were at each break or continue."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.falls:
                return
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr():
                self.value(node.value)
                if isinstance(node.value, ast.Call) and (self.imports.resolve(node.value.func) or "").endswith("set_grad_enabled"):
                    self.grad = self.mode_of(node.value, self.grad)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value)
            case ast.AnnAssign(value=ast.expr() as given):
                self.assign(node.target, self.value(given))
            case ast.AugAssign():
                self.augmented(node)
            case ast.If():
                self.branches(node)
            case ast.For() | ast.AsyncFor():
                self.loop(node, self.value(node.iter))
            case ast.While():
                self.value(node.test)
                self.loop(node, None)
            case ast.With() | ast.AsyncWith():
                self.with_block(node)
            case ast.Try() | TryStar():
                self.try_block(node)
            case ast.Match():
                self.match_block(node)
            case _:
                self.simple(node)

    def simple(self, node: ast.stmt) -> None:
        match node:
            case ast.Return():
                if node.value:
                    self.happened(Did.RETURN, node, self.value(node.value))
                self.exits.append(self.env)
                self.falls = False
            case ast.Raise() | ast.Break() | ast.Continue():
                if not isinstance(node, ast.Raise) and self.loop_exits:
                    self.loop_exits[-1].append(self.env)
                self.falls = False
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.bind(node.name, self.function(node))
            case ast.ClassDef():
                self.bind(node.name, self.plain(node))
            case ast.Delete():
                for target in node.targets:
                    if name := dotted(target):
                        self.bind(name, self.plain(node))
            case ast.Global() | ast.Nonlocal():
                self.shared.update(node.names)
            case ast.Assert():
                self.value(node.test)
                self.env.update(self.narrowed(node.test, True))

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        old = self.value(target)
        added = self.value(node.value)
        if old.kind is Kind.CONTAINER:
            self.put(old, added, node)
            return
        new = self.binary(node, old, added)
        self.results[node].append(new)
        self.assign(target, new)

    def branches(self, node: ast.If) -> None:
        """An if with all its elifs, one after the other: a long chain must not nest."""
        ends: list[Env] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            one = rest[0]
            self.value(one.test)
            before = dict(self.env)
            self.env.update(self.narrowed(one.test, True))
            self.way(one.body, ends)
            self.env = {**before, **self.narrowed(one.test, False)}
            rest = one.orelse
        self.way(rest, ends)
        self.rejoin(ends)

    def way(self, body: Sequence[ast.stmt], ends: list[Env]) -> None:
        """Walks one of several ways; its end counts if control gets there."""
        self.falls = True
        self.block(body)
        if self.falls:
            ends.append(self.env)

    def rejoin(self, ends: list[Env]) -> None:
        self.falls = bool(ends)
        if ends:
            self.env = self.merge(ends)

    def loop(self, node: ast.For | ast.AsyncFor | ast.While, iterable: Value | None) -> None:
        before = dict(self.env)
        self.loop_exits = [*self.loop_exits, []]
        self.loops += 1
        for _ in range(2 if self.loops <= TWICE else 1):
            self.falls = True
            if iterable is not None and not isinstance(node, ast.While):
                self.assign(node.target, self.drawn(iterable, node.iter))
            self.block(node.body)
            ends = [*self.loop_exits[-1], *([self.env] if self.falls else [])]
            if not ends:
                break
            self.env = dict(self.merge(ends))
        self.loops -= 1
        exits = self.loop_exits[-1]
        self.loop_exits = self.loop_exits[:-1]
        self.falls = True
        self.env = self.merge([before, self.env, *exits])
        self.block(node.orelse)

    def with_block(self, node: ast.With | ast.AsyncWith) -> None:
        mode = self.grad
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars:
                self.assign(item.optional_vars, value)
            made_by = self.ancestry.origin(value).node
            self.grad = self.mode_of(made_by if isinstance(made_by, ast.expr) else item.context_expr, self.grad)
        self.block(node.body)
        self.grad = mode

    def mode_of(self, node: ast.expr, otherwise: Answer) -> Answer:
        """Whether autograd records under the context manager or decorator `node`."""
        if isinstance(node, ast.IfExp):
            ways = {self.mode_of(node.body, otherwise), self.mode_of(node.orelse, otherwise)}
            return ways.pop() if len(ways) == 1 else Answer.UNKNOWN
        name = self.imports.resolve(node.func if isinstance(node, ast.Call) else node) or ""
        if name in NO_GRAD or name.endswith((".no_grad", ".inference_mode")) or name in {"no_grad", "inference_mode"}:
            off = isinstance(node, ast.Call) and node.args and getattr(node.args[0], "value", True) is not True
            return Answer.UNKNOWN if off else Answer.NO
        if name in ENABLE_GRAD:
            return Answer.YES
        if name.endswith("set_grad_enabled") and isinstance(node, ast.Call):
            flag = getattr(node.args[0], "value", None) if node.args else None
            return {False: Answer.NO, True: Answer.YES}.get(flag, Answer.UNKNOWN) if isinstance(flag, bool) else Answer.UNKNOWN
        return Answer.UNKNOWN if "grad" in name.rpartition(".")[2] else otherwise

    def try_block(self, node: ast.Try | TryStar) -> None:
        before = dict(self.env)
        ends: list[Env] = []
        self.way([*node.body, *node.orelse], ends)
        after = self.env
        for handler in node.handlers:
            self.env = self.merge([before, after])
            if handler.name:
                self.bind(handler.name, self.plain(handler))
            self.way(handler.body, ends)
        fell = bool(ends)
        self.rejoin(ends)
        self.falls = True
        self.block(node.finalbody)
        self.falls = self.falls and fell

    def match_block(self, node: ast.Match) -> None:
        subject = self.value(node.subject)
        ends: list[Env] = []
        before = self.env
        for case in node.cases:
            self.env = dict(before)
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                if isinstance(name, str):
                    self.bind(name, self.derived(pattern, How.PART, [subject]))
            self.way(case.body, ends)
        self.rejoin([*ends, dict(before)])

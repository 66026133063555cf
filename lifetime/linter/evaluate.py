"""The value of an expression."""

from __future__ import annotations

import ast
from abc import abstractmethod

from lifetime.linter.closures import free_names
from lifetime.linter.imports import dotted
from lifetime.linter.state import Did, State
from lifetime.linter.torch_names import PLAIN_ATTRIBUTES, TENSOR_ONLY, VIEW_ATTRIBUTES
from lifetime.linter.values import Answer, How, Kind, Value

PLAIN_TYPES = {"int", "float", "bool", "str", "bytes"}
DEEPEST = 80
"""Expressions nested deeper than this are generated; they are opaque."""


class Expressions(State):
    depth = 0

    @abstractmethod
    def call(self, node: ast.Call) -> Value: ...

    def value(self, node: ast.expr) -> Value:
        if self.depth > DEEPEST:
            return self.given(node)
        self.depth += 1
        try:
            value = self._value(node)
        finally:
            self.depth -= 1
        self.results[node].append(value)
        return value

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                kind = Kind.NONE if node.value is None else Kind.PLAIN
                return self.ancestry.new(kind, Answer.NO, How.FRESH, node)
            case ast.Name():
                return self.name(node.id, node)
            case ast.Attribute():
                return self.attribute(node)
            case ast.Call():
                return self.call(node)
            case ast.Subscript():
                self.value(node.slice)
                return self.part(self.value(node.value), node)
            case ast.List() | ast.Tuple() | ast.Set():
                return self.container(node, [self.value(e) for e in node.elts])
            case ast.Dict():
                return self.container(node, [self.value(v) for v in node.values])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case _:
                return self.compound(node)

    def compound(self, node: ast.expr) -> Value:
        match node:
            case ast.BinOp():
                return self.binary(node, self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                operand = self.value(node.operand)
                return self.plain(node) if isinstance(node.op, ast.Not) else self.operation(node, [operand])
            case ast.BoolOp():
                return self.join([self.value(v) for v in node.values])
            case ast.Compare():
                return self.compare(node)
            case ast.IfExp():
                return self.conditional(node)
            case ast.NamedExpr():
                value = self.value(node.value)
                self.bind(node.target.id, value)
                return value
            case ast.Starred() | ast.Await():
                return self.value(node.value)
            case ast.Yield() | ast.YieldFrom():
                if node.value:
                    self.happened(Did.YIELD, node, self.value(node.value))
                return self.given(node)
            case ast.Lambda():
                return self.function(node)
            case _:
                return self.plain(node)

    def function(self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        """A nested function: a plain value that remembers its node; what it refers to is noted as captured."""
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            self.value(default)
        values = [self.env[name] for name in sorted(free_names(node) & self.env.keys())]
        if values:
            self.happened(Did.CAPTURE, node, *values)
        return self.plain(node)

    def name(self, name: str, node: ast.expr) -> Value:
        """The value of a name; an unknown one is given from outside and the same from then on."""
        if name not in self.env:
            known = name in self.imports.defined or name in self.imports.full
            kind = Kind.MODULE if name in self.modules else Kind.PLAIN if known else Kind.OPAQUE
            self.bind(name, self.given(node, kind))
        return self.env[name]

    def attribute(self, node: ast.Attribute) -> Value:
        name = dotted(node)
        if name and name in self.env:
            return self.env[name]
        if name in self.modules:
            value = self.given(node, Kind.MODULE)
        elif node.attr in PLAIN_ATTRIBUTES or (name and (self.imports.resolve(node) or "").startswith("torch.")):
            self.value(node.value)
            return self.plain(node)
        else:
            value = self.part(self.value(node.value), node)
        if name:
            self.bind(name, value)
        return value

    def part(self, whole: Value, node: ast.Attribute | ast.Subscript) -> Value:
        """An attribute or an item of `whole`."""
        attribute = node.attr if isinstance(node, ast.Attribute) else ""
        if attribute == "grad_fn":
            return Value(Kind.NODE, whole.graph, whole.own)
        if attribute in {"data", "grad"}:
            return self.fresh(node)
        if whole.kind is Kind.CONTAINER and not attribute:
            return self.item(whole, node)
        if whole.kind is Kind.TENSOR and (not attribute or attribute in VIEW_ATTRIBUTES):
            return self.operation(node, [whole])
        if whole.kind in (Kind.PLAIN, Kind.NONE) or attribute in TENSOR_ONLY:
            return self.plain(node)
        how = How.GIVEN if self.ancestry.origin(whole).how is How.GIVEN else How.PART
        return self.derived(node, how, [whole])

    def item(self, whole: Value, node: ast.AST) -> Value:
        """One item of a container, whichever it is."""
        items = self.ancestry.contents(whole)
        if not items:
            return self.derived(node, How.PART, [whole])
        known = self.join(items)
        if known.kind is not Kind.CONTAINER:
            return self.linked(known, whole, node)
        parts = [self.linked(part, whole, node) for part in self.ancestry.contents(known)]
        return self.container(self.ancestry.origin(known).node, parts)

    def linked(self, part: Value, whole: Value, node: ast.AST) -> Value:
        """`part`, known to have come out of `whole`."""
        if part.kind in (Kind.PLAIN, Kind.NONE):
            return part
        return self.ancestry.new(part.kind, part.graph, How.JOIN, node, [part, whole], part.leaf)

    def binary(self, node: ast.AST, left: Value, right: Value) -> Value:
        if Kind.CONTAINER in {left.kind, right.kind}:
            return self.container(
                node, [left, right] if left.kind is right.kind else [v for v in (left, right) if v.kind is not Kind.PLAIN]
            )
        return self.operation(node, [left, right])

    def compare(self, node: ast.Compare) -> Value:
        """A mask where a tensor is compared; never a graph."""
        operands = [self.value(node.left), *(self.value(c) for c in node.comparators)]
        by_identity = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops)
        tensor = Answer.NO if by_identity else max(self.ancestry.holds(v) for v in operands)
        if tensor is Answer.NO:
            return self.plain(node)
        return self.ancestry.new(Kind.TENSOR if tensor is Answer.YES else Kind.OPAQUE, Answer.NO, How.FRESH, node)

    def conditional(self, node: ast.IfExp) -> Value:
        self.value(node.test)
        before = dict(self.env)
        self.env.update(self.narrowed(node.test, True))
        chosen = self.value(node.body)
        self.env = {**before, **self.narrowed(node.test, False)}
        other = self.value(node.orelse)
        self.env = before
        return self.join([chosen, other])

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        before = dict(self.env)
        for generator in node.generators:
            self.assign(generator.target, self.drawn(self.value(generator.iter), generator.iter))
            for test in generator.ifs:
                self.value(test)
                self.env.update(self.narrowed(test, True))
        element = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        self.env = before
        return self.container(node, [element])

    def drawn(self, iterable: Value, node: ast.expr) -> Value:
        """What one turn of a loop over `iterable` gets."""
        if iterable.kind is Kind.CONTAINER:
            return self.item(iterable, node)
        if iterable.kind is Kind.TENSOR:
            return self.operation(node, [iterable])
        how = self.ancestry.origin(iterable).how
        if how in (How.GIVEN, How.ITEM, How.FRESH):
            return self.ancestry.new(Kind.OPAQUE, Answer.UNKNOWN, How.ITEM, node)
        return self.derived(node, How.PART, [iterable])

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name():
                self.bind(target.id, value)
                if target.id in self.shared:
                    self.happened(Did.STORE, target, value)
            case ast.Tuple() | ast.List():
                self.unpack(target, value)
            case ast.Starred():
                self.assign(target.value, value if value.kind is Kind.CONTAINER else self.container(target, [value]))
            case ast.Attribute():
                self.value(target.value)
                if name := dotted(target):
                    self.bind(name, value)
                self.happened(Did.STORE, target, value)
            case ast.Subscript():
                self.value(target.slice)
                self.put_item(target, value)

    def put_item(self, target: ast.Subscript, value: Value) -> None:
        """`whole[...] = value`: a container holds it from now on, a tensor takes its graph over."""
        whole = self.value(target.value)
        name = dotted(target.value)
        if whole.kind is Kind.TENSOR and name:
            changed = self.operation(target, [whole, value])
            self.bind(name, changed)
            self.happened(Did.PUT, target, changed, value)
        else:
            self.put(whole, value, target)

    def unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        """By position where the value is a tuple that was written out; else each target gets some part of it."""
        parts = self.positions(value)
        stars = [k for k, e in enumerate(target.elts) if isinstance(e, ast.Starred)]
        if (
            parts is None
            or len(stars) > 1
            or (len(parts) < len(target.elts) - len(stars) if stars else len(parts) != len(target.elts))
        ):
            for element in target.elts:
                self.assign(element, self.drawn(value, element))
            return
        first = stars[0] if stars else len(target.elts)
        rest = len(target.elts) - first - 1
        for element, part in zip(target.elts[:first], parts[:first], strict=True):
            self.assign(element, part)
        if stars:
            last = len(parts) - rest
            self.assign(target.elts[first], self.container(target, parts[first:last]))
            for element, part in zip(target.elts[first + 1 :], parts[last:], strict=True):
                self.assign(element, part)

    def positions(self, value: Value) -> list[Value] | None:
        """The items of a tuple or list that was written out, in order."""
        origin = self.ancestry.origin(value)
        written = isinstance(origin.node, (ast.Tuple, ast.List)) and len(origin.parents) == len(origin.node.elts)
        starred = any(isinstance(e, ast.Starred) for e in getattr(origin.node, "elts", ()))
        return list(origin.parents) if value.kind is Kind.CONTAINER and written and not starred else None

    def put(self, container: Value, item: Value, node: ast.AST) -> None:
        if container.kind is not Kind.CONTAINER:
            self.happened(Did.STORE, node, item)
        elif container.own != item.own:
            self.ancestry.contents(container).append(item)
        self.happened(Did.PUT, node, container, item)

    def narrowed(self, test: ast.expr, truth: bool) -> dict[str, Value]:
        """What a condition says about names once it is known to be `truth`."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.narrowed(test.operand, not truth)
            case ast.BoolOp(op=ast.And()) if truth:
                return {k: v for part in test.values for k, v in self.narrowed(part, True).items()}
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                is_none = isinstance(test.ops[0], ast.Is) == truth
                return {name: self.ancestry.new(Kind.NONE, Answer.NO, How.FRESH, test)} if is_none else {}
            case ast.Call(args=[ast.Name(id=name), *_]):
                return self.typed(test, name, truth)
        return {}

    def typed(self, test: ast.Call, name: str, truth: bool) -> dict[str, Value]:
        """What `isinstance(name, ...)` and the like say about `name`."""
        old = self.name(name, test.args[0])
        if self.asks_for_tensor(test):
            return {name: Value(Kind.TENSOR if truth else Kind.PLAIN, old.graph if truth else Answer.NO, old.own)}
        kind = self.imports.resolve(test.args[1]) if len(test.args) == 2 else None
        if truth and kind in PLAIN_TYPES and self.imports.resolve(test.func) == "isinstance":
            return {name: Value(Kind.PLAIN, Answer.NO, old.own)}
        return {}

    def asks_for_tensor(self, test: ast.Call) -> bool:
        asked = self.imports.resolve(test.func)
        if asked == "isinstance" and len(test.args) == 2:
            kind = self.imports.resolve(test.args[1]) or ""
            return kind in {"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable"}
        return asked in {"torch.is_tensor", "torch.overrides.is_tensor_like"}

"""Custom `torch.autograd.Function` classes: their methods, and which of their inputs are certainly tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.linter.closures import own_nodes, parameters
from lifetime.linter.imports import Imports, dotted
from lifetime.linter.module import Function, Module
from lifetime.linter.statements import all_statements
from lifetime.linter.torch_names import LIST_OPERATIONS, NO_GRADIENT, OPERATION_NAMESPACES, PLAIN_FUNCTIONS, TENSOR_ONLY
from lifetime.linter.values import Kind

BASES = {"torch.autograd.Function", "torch.autograd.function.Function", "torch.autograd.function.InplaceFunction"}
TENSOR_EVIDENCE = (TENSOR_ONLY - {"grad_fn"}) | {"requires_grad", "is_cuda", "dim", "untyped_storage"}
SAVING = {"save_for_backward", "mark_dirty", "mark_non_differentiable"}


@dataclass(frozen=True)
class AutogradFunction:
    node: ast.ClassDef
    forward: Function
    backward: Function | None
    setup_context: Function | None

    @property
    def saver(self) -> Function:
        """The method that gets ctx in the forward pass."""
        return self.setup_context or self.forward

    @property
    def ctx(self) -> str | None:
        return next(iter(parameters(self.saver)), None)

    @property
    def inputs(self) -> list[str]:
        """Names of the positional inputs, in the order in which backward returns their gradients."""
        a = self.forward.args
        names = [p.arg for p in (*a.posonlyargs, *a.args)]
        return names if self.setup_context else names[1:]

    def tensors(self, imports: Imports) -> dict[str, Kind | list[Kind]]:
        """Inputs that the class itself shows to be tensors: they get a gradient, are saved, or are used as only a tensor can be.

        A list stands for a tuple whose items are tensors. An input that is tested for its type may be something else.
        """
        methods = [m for m in (self.forward, self.backward) if m]
        tested = {name for m in methods for name in _tested(m)}
        used = {name for m in methods for name in _used_as_tensor(m, imports)} - tested
        names = {*self.inputs, *(v.arg for v in [self.forward.args.vararg] if v)}
        found: dict[str, Kind | list[Kind]] = {name: [Kind.TENSOR] for name in set(_lists_of_tensors(self.forward)) & names}
        return {**found, **dict.fromkeys((set(self.differentiated()) | used) & names, Kind.TENSOR)}

    def differentiated(self) -> Iterator[str]:
        """Inputs for which backward returns something: autograd accepts nothing but None for an input that is no tensor."""
        if self.backward is None:
            return
        never = _only_none(self.backward)
        for node in own_nodes(self.backward):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            one = len(self.inputs) == 1 and self.forward.args.vararg is None
            gradients = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if one else []
            for name, gradient in zip(self.inputs, gradients, strict=False):
                if isinstance(gradient, ast.Starred):
                    break
                empty = isinstance(gradient, ast.Constant) or (isinstance(gradient, ast.Name) and gradient.id in never)
                if not empty:
                    yield name


def autograd_functions(module: Module, imports: Imports) -> Iterator[AutogradFunction]:
    known: set[str] = set()
    for node, _ in all_statements(module):
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {imports.resolve(base) or "" for base in node.bases}
        if not bases & (BASES | known):
            continue
        known.add(node.name)
        methods = {s.name: s for s in node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}
        if forward := methods.get("forward"):
            backward = methods.get("backward") or methods.get("vjp")
            yield AutogradFunction(node, forward, backward, methods.get("setup_context"))


def _only_none(function: Function) -> set[str]:
    """Names to which a function assigns None and nothing else."""
    given: dict[str, list[bool]] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            empty = isinstance(node.value, ast.Constant) and node.value.value is None
            if isinstance(node.value, ast.Tuple) and all(isinstance(e, ast.Constant) and e.value is None for e in node.value.elts):
                empty = True
            for name in (n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                given.setdefault(name, []).append(empty)
        elif isinstance(node, (ast.AugAssign, ast.NamedExpr, ast.For)):
            for name in (n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)):
                given.setdefault(name, []).append(False)
    return {name for name, empty in given.items() if all(empty)}


def _tested(method: Function) -> Iterator[str]:
    """Names that a method asks for their type."""
    for node in own_nodes(method):
        match node:
            case ast.Call(func=func, args=[ast.Name(id=name), *_]) if (dotted(func) or "").endswith(("isinstance", "is_tensor")):
                yield name


def _lists_of_tensors(method: Function) -> Iterator[str]:
    """Names whose items a loop or comprehension uses as only tensors can be, without a look at their type."""
    tested = set(_tested(method))
    for node in own_nodes(method):
        match node:
            case ast.comprehension(target=ast.Name(id=item), iter=ast.Name(id=whole)) if item not in tested:
                pass
            case ast.For(target=ast.Name(id=item), iter=ast.Name(id=whole)) if item not in tested:
                pass
            case _:
                continue
        uses = (n for n in own_nodes(method) if isinstance(n, ast.Attribute) and dotted(n.value) == item)
        if any(n.attr in TENSOR_EVIDENCE for n in uses):
            yield whole


def _used_as_tensor(method: Function, imports: Imports) -> Iterator[str]:
    for node in own_nodes(method):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in TENSOR_EVIDENCE:
                yield name
            case ast.Call(func=ast.Attribute(attr=attr), args=arguments) if attr in SAVING:
                yield from (n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name) and not _inside_call(a))
            case ast.Call(func=func, args=[ast.Name(id=name), *_]) if _takes_tensor(imports.resolve(func)):
                yield name


def _inside_call(node: ast.expr) -> bool:
    return not isinstance(node, ast.Name) and not (isinstance(node, ast.Starred) and isinstance(node.value, ast.Name))


def _takes_tensor(name: str | None) -> bool:
    """Whether the first argument of a function of torch is a tensor."""
    if not name or not name.startswith(OPERATION_NAMESPACES):
        return False
    space, _, last = name.rpartition(".")
    if f"{space}." not in OPERATION_NAMESPACES or not last.islower() or last in LIST_OPERATIONS | PLAIN_FUNCTIONS:
        return False
    return last not in NO_GRADIENT or last.endswith("_like")


def dropped(function: AutogradFunction) -> set[str]:
    """Attributes of ctx that backward gives up on every way through it."""
    if function.backward is None:
        return set()
    ctx = next(iter(parameters(function.backward)), "")
    found, _ = _dropped(function.backward.body, ctx)
    return found


def _dropped(block: list[ast.stmt], ctx: str) -> tuple[set[str], bool]:
    """What a block gives up whenever it runs, and whether control may leave it before its end."""
    found: set[str] = set()
    for statement in block:
        if isinstance(statement, ast.If):
            ways = [_dropped(statement.body, ctx), _dropped(statement.orelse, ctx)]
            found |= ways[0][0] & ways[1][0]
            if any(left for _, left in ways):
                return found, True
        elif isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            inner, left = _dropped([*statement.body, *getattr(statement, "finalbody", [])], ctx)
            found |= inner
            if left:
                return found, True
        elif any(isinstance(n, ast.Return) for n in ast.walk(statement)):
            return found, True
        else:
            found |= set(_given_up(statement, ctx))
    return found, False


def _given_up(statement: ast.stmt, ctx: str) -> Iterator[str]:
    match statement:
        case ast.Delete(targets=targets):
            yield from (name for t in targets if (name := _attribute(t, ctx)))
        case ast.Assign(targets=targets, value=ast.Constant(value=None)):
            yield from (name for t in targets for n in ast.walk(t) if isinstance(n, ast.expr) and (name := _attribute(n, ctx)))
        case ast.Assign(targets=[ast.Tuple(elts=elements)], value=ast.Tuple(elts=values)):
            for element, value in zip(elements, values, strict=False):
                if isinstance(value, ast.Constant) and value.value is None and (name := _attribute(element, ctx)):
                    yield name


def _attribute(node: ast.expr, ctx: str) -> str | None:
    head, _, attribute = (dotted(node) or "").partition(".")
    return attribute if head == ctx and attribute and "." not in attribute else None

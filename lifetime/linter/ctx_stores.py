"""What the forward pass of an autograd Function keeps on ctx."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from lifetime.linter.autograd_function import AutogradFunction
from lifetime.linter.closures import own_nodes, parameters
from lifetime.linter.execute import Execution
from lifetime.linter.imports import dotted
from lifetime.linter.module import Module
from lifetime.linter.state import Did
from lifetime.linter.study import Known, Study
from lifetime.linter.values import Answer, How, Kind, Value


@dataclass(frozen=True)
class Stored:
    """A tensor, or a container that holds one, that goes to `ctx.<attribute>`."""

    attribute: str
    target: ast.Attribute
    is_output: bool
    is_bare: bool
    """It is the tensor itself, not a container."""


def stores(module: Module, facts: Study, function: AutogradFunction) -> Iterator[Stored]:
    """Each attribute that keeps a tensor, once, where it is set; nothing where that is in doubt."""
    if not any(_sets(node, function.ctx) for node in own_nodes(function.saver)):
        return
    run = facts.walk(function.saver, _known(function, facts))
    if run is None:
        return
    outputs = _outputs(run, function)
    seen: set[str] = set()
    for event in run.events:
        target = event.node
        if event.did is not Did.STORE or not isinstance(target, ast.Attribute) or target.attr in seen:
            continue
        if not isinstance(target.value, ast.Name) or target.value.id != function.ctx:
            continue
        value = event.values[0]
        is_output = any(part.own in outputs for part in run.ancestry.flat(value))
        if is_output or run.ancestry.holds(value) is Answer.YES:
            seen.add(target.attr)
            yield Stored(target.attr, target, is_output, value.kind is not Kind.CONTAINER)


def _sets(node: ast.AST, ctx: str | None) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node.value) == ctx


def _known(function: AutogradFunction, facts: Study) -> Known:
    tensors = function.tensors(facts.imports)
    if not function.setup_context:
        return tensors
    names = parameters(function.setup_context)[1:3]
    annotated = facts.kinds(function.forward)
    found = [tensors.get(name) or annotated.get(name, Kind.OPAQUE) for name in function.inputs]
    inputs = [kind if isinstance(kind, Kind) else Kind.CONTAINER for kind in found]
    given: list[Kind | list[Kind]] = [inputs, Kind.TENSOR]
    return dict(zip(names, given, strict=False))


def _outputs(run: Execution, function: AutogradFunction) -> set[int]:
    """Identities of what forward returns: every tensor, and a sole result of whatever kind."""
    if function.setup_context:
        name = parameters(function.setup_context)[2:3]
        whole = [env[n] for env in run.exits for n in name if n in env]
        roots = {v.own for v in whole}
        parts = [k for k, o in enumerate(run.ancestry.origins) if o.how is How.OPERATION and [p.own for p in o.parents] == [*roots]]
        return {*roots, *parts}
    found: set[int] = set()
    for event in run.events:
        if event.did is Did.RETURN:
            value = event.values[0]
            parts_of = list(run.ancestry.flat(value))
            sole = len(parts_of) == 1
            found |= {v.own for v in parts_of if _is_output(v, sole)}
    return found


def _is_output(value: Value, sole: bool) -> bool:
    return value.kind is Kind.TENSOR or (sole and value.kind is Kind.OPAQUE)

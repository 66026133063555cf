"""Whether the graph behind a back-propagated value can be needed again."""

from __future__ import annotations

import ast

from lifetime.linter.execute import Execution
from lifetime.linter.state import Did, Event
from lifetime.linter.values import Answer, How, Kind, Value

LEAVING = (Did.RETURN, Did.YIELD, Did.STORE, Did.ARGUMENT, Did.CAPTURE)
MADE_HERE = (How.OPERATION, How.FORWARD)
LOSS_WORDS = ("loss", "criterion", "objective")


def used_once(run: Execution, call: ast.Call) -> bool:
    """Whether the graph that `call` back-propagates is certainly made in this function, used there and nowhere else.

    Loops were walked twice, so a graph that outlives a turn of its loop meets the next turn's backward here.
    """
    at = [k for k, event in enumerate(run.events) if event.did is Did.BACKWARD and event.node is call]
    return bool(at) and all(_is_last(run, k) for k in at)


def _is_last(run: Execution, at: int) -> bool:
    roots = [v for v in run.events[at].values[:1] if v.kind not in (Kind.PLAIN, Kind.NONE)]
    graph = set(run.ancestry.behind(*roots))
    if not roots or not all(_made_here(run, v) for v in roots):
        return False
    if _replays(run, at) and any(run.ancestry.origins[own].how is How.GIVEN for own in graph):
        return False
    nodes = {own for own in graph if run.ancestry.origins[own].how not in (How.GIVEN, How.ITEM, How.FRESH)}
    walked_on = run.ancestry.ahead(nodes)
    return not any(_meets(run, event, walked_on, k > at) for k, event in enumerate(run.events) if k != at)


def _replays(run: Execution, at: int) -> bool:
    """Whether the call passes a gradient on, as a backward that runs forward again does: then what its forward was
    given may hang on a graph outside."""
    return any(value.kind not in (Kind.PLAIN, Kind.NONE) for value in run.events[at].values[1:])


def _meets(run: Execution, event: Event, graph: set[int], later: bool) -> bool:
    """Whether `event` hands a part of the graph on, or (when `later`) walks it again. `graph` holds all that hangs on it."""
    if event.did is Did.PUT:
        outside = run.ancestry.origin(event.values[0]).how in (How.GIVEN, How.PART, How.ITEM)
        return outside and event.values[1].own in graph
    counts = later if event.did in (Did.BACKWARD, Did.ARGUMENT) else event.did in LEAVING
    return counts and any(value.own in graph for value in event.values)


def _made_here(run: Execution, root: Value) -> bool:
    """Whether everything behind `root` that may carry a graph comes out of a forward in this function."""
    stack, seen = [root], set[int]()
    while stack:
        value = stack.pop()
        if value.own in seen or value.kind in (Kind.PLAIN, Kind.NONE) or value.leaf:
            continue
        seen.add(value.own)
        origin = run.ancestry.origin(value)
        if origin.how is How.FORWARD:
            if is_loss(origin.node) and not any(_fresh(run, v) for v in origin.parents):
                return False
            stack.extend(v for v in origin.parents if _fresh(run, v))
        elif origin.how in (How.OPERATION, How.JOIN, How.CONTAINER, How.PART):
            fresh = [v for v in origin.parents if _fresh(run, v)]
            if not fresh and value.graph is not Answer.NO:
                return False
            stack.extend(fresh)
        elif origin.how is not How.FRESH:
            return False
    return True


def _fresh(run: Execution, value: Value) -> bool:
    """Whether a graph made in this function may stand behind `value`: data that was handed in is not counted."""
    behind = run.ancestry.behind(value)
    return any(run.ancestry.origins[own].how in (*MADE_HERE, How.CALL) or v.leaf for own, v in behind.items())


def is_loss(node: ast.AST | None) -> bool:
    """Whether a call looks like a loss function's: what it returns is differentiable, unlike what a metric returns."""
    name = ast.unparse(node.func).lower() if isinstance(node, ast.Call) else ""
    return any(word in name for word in LOSS_WORDS)

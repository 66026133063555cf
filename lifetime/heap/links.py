"""A chain as the report tells it: links with statuses and reasons, and Python that leads to the tensor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lifetime.heap.graph import Edge, EdgeKind, Node, NodeKind, RootRef
from lifetime.heap.model import Chain, Leaking, Link, Root, RootKind
from lifetime.heap.references import holder, is_namespace, reference
from lifetime.heap.status import UNKNOWN, Status

_READABLE = frozenset(
    {
        EdgeKind.ATTRIBUTE,
        EdgeKind.GLOBAL,
        EdgeKind.ITEM,
        EdgeKind.CELL,
        EdgeKind.CLOSURE,
        EdgeKind.DEFAULT,
        EdgeKind.BOUND,
        EdgeKind.TRACEBACK,
        EdgeKind.GRAD,
        EdgeKind.GRAD_FN,
        EdgeKind.NEXT,
        EdgeKind.SAVED,
        EdgeKind.VARIABLE,
        EdgeKind.BASE,
    }
)
"""Kinds of references that an expression can go through, where their name reads as Python."""
_OF_A_STEP = frozenset({EdgeKind.GRAD_FN.value, EdgeKind.NEXT.value, EdgeKind.SAVED.value, EdgeKind.GRAD.value})
"""References that leave a tensor or an autograd node."""
_HOLDERS = {
    RootKind.LOCAL: "frame",
    RootKind.THREAD: "frame",
    RootKind.NATIVE: "C++",
    RootKind.GLOBAL: "module",
    RootKind.CLASS: "type",
    RootKind.SUSPENDED_FRAME: "frame",
    RootKind.INTERPRETER: "interpreter",
}
_CYCLES = {RootKind.REFERENCE_CYCLE: "unreachable reference cycle", RootKind.NATIVE_CYCLE: "cycle that C++ closes"}
_KEY = re.compile(r"\[(['\"])([^\W\d]\w*)\1\]\Z")
_ATTRIBUTE = re.compile(r"\.__dict__\[(['\"])([^\W\d]\w*)\1\]")
UNNAMED = "an owner in C++ that no reader can name"
NATIVE_LINK = Link("C++", "C++", "<owns>", EdgeKind.NATIVE.value)
"""Stands for the owner in chains that begin in C++."""


def links(nodes: Sequence[Node], edges: Sequence[Edge], statuses: Sequence[Status]) -> tuple[list[Link], list[int]]:
    """One link a reference, and for each edge the index of its link or of the next one. `nodes[k]` is the source of `edges[k]`.

    The last step from a tensor to its storage is none. An object's `__dict__` and the item in it are one: the attribute.
    """
    told: list[Link] = []
    place: list[int] = []
    owner: tuple[Node, Status] | None = None
    for node, edge, status in zip(nodes, edges, statuses, strict=True):
        place.append(len(told))
        key = _KEY.match(edge.name) if owner is not None and edge.kind is EdgeKind.ITEM else None
        if is_namespace(edge) and edge is not edges[-1]:
            owner = (node, status)
        elif owner is not None and key is not None:
            told.append(_link(owner[0], f".{key.group(2)}", EdgeKind.ATTRIBUTE, owner[1]))
            owner = None
        else:
            if owner is not None:
                told.append(_link(owner[0], ".__dict__", EdgeKind.ATTRIBUTE, owner[1]))
                place[-1], owner = len(told), None
            if edge.kind is not EdgeKind.STORAGE or node.kind is not NodeKind.TENSOR:
                told.append(_link(node, reference(edge), edge.kind, status))
    return told, place


def _link(node: Node, written: str, kind: EdgeKind, status: Status) -> Link:
    return Link(holder(node), node.type_name, written, kind.value, node.where, *status)


def root_link(root: RootRef, status: Status = UNKNOWN) -> Link:
    """The reference of a root that holds a value directly: a running frame's variable, a C++ cache."""
    head, dot, name = root.name.rpartition(".")
    kind = {RootKind.LOCAL: EdgeKind.LOCAL, RootKind.THREAD: EdgeKind.LOCAL, RootKind.NATIVE: EdgeKind.NATIVE}
    named = dot and root.kind is not RootKind.NATIVE
    text = f".{name}" if named else "<owns>" if root.kind is RootKind.NATIVE else f".{root.name}"
    told = head if named else root.name
    return Link(told, _HOLDERS.get(root.kind, "root"), text, kind.get(root.kind, EdgeKind.GLOBAL).value, root.where, *status)


def rooted(root: RootRef, direct: bool, told: Sequence[Link], edges: Sequence[Edge]) -> Chain:
    """A chain from a root. `direct`: the root refers to a value and not to a module, a class or a frame."""
    first = told[0] if told else None
    joined = (
        first is not None and not direct and first.kind in {EdgeKind.GLOBAL.value, EdgeKind.LOCAL.value, EdgeKind.ATTRIBUTE.value}
    )
    name = f"{root.name}{first.reference}" if joined and first is not None else root.name
    return Chain(Root(root.kind, name, root.where), tuple(told), None, expression(root, edges))


def unrooted(kind: RootKind, told: Sequence[Link], closes: int | None) -> Chain:
    return Chain(Root(kind, _CYCLES.get(kind, UNNAMED)), tuple(told), closes, None)


def expression(root: RootRef, edges: Sequence[Edge]) -> str | None:
    """Python that evaluates to the tensor, or None where a reference of the chain cannot be written."""
    text = root.expression
    for edge in edges:
        if text is None or edge.kind is EdgeKind.STORAGE:
            break
        step = reference(edge)
        text = text + step if edge.kind in _READABLE and "<" not in step else None
    return _ATTRIBUTE.sub(r".\2", text) if text is not None else None


def cycle(told: Sequence[Link], turn: int) -> tuple[list[Link], int | None]:
    """The links of a chain whose first `turn` references are a cycle, and the link that the last one closes on.

    That is the first one where the tensor itself lies on the cycle. Where it hangs below, nothing closes at the end: the link
    after the turn says that its holder is the first one again.
    """
    if not turn:
        return list(told), None
    if turn == len(told):
        return list(told), 0
    again = replace(told[turn], reason="the first holder again: here the cycle closes")
    return [*told[:turn], again, *told[turn + 1 :]], None


def consistent(told: Sequence[Link], blamed: int, judged: bool = True) -> tuple[Link, ...]:
    """Statuses made to agree: whatever leads to a holder that is alive on purpose is not leaking, and, where that is `judged`, a
    tensor or a graph below the blamed reference should have died with its step."""
    last = max((k for k, link in enumerate(told) if link.leaking is Leaking.NO), default=-1)
    found = []
    for k, link in enumerate(told):
        if k < last and link.leaking is Leaking.UNKNOWN:
            link = replace(link, leaking=Leaking.NO, reason=f"{told[last].holder} below it is not leaking")
        elif judged and k > max(blamed, last) and link.kind in _OF_A_STEP:
            link = replace(link, leaking=Leaking.YES, reason="it should have died with its step")
        found.append(link)
    return tuple(found)

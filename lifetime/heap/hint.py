"""The one-line remedy for the holder that was found."""

from __future__ import annotations

from collections.abc import Sequence

from lifetime.heap.graph import EdgeKind
from lifetime.heap.model import Link, RootKind, Verdict

_BY_KIND = {
    EdgeKind.GRAD_FN.value: "keep {holder}.detach(), or its .item(): the kept tensor holds the whole graph of its step",
    EdgeKind.SAVED.value: "save it with save_for_backward, which releases after backward, or detach what the hook packs",
    EdgeKind.GRAD.value: "set .grad = None after the harvest, or take the gradient with torch.autograd.grad",
    EdgeKind.HOOK.value: "keep the handle and call handle.remove(), or let the hook take what it needs as detached values",
    EdgeKind.CELL.value: "let the closure take a detached value or a weakref instead of {name}",
    EdgeKind.CLOSURE.value: "let the closure take a detached value or a weakref",
    EdgeKind.DEFAULT.value: "do not keep a tensor as a default argument: pass it in",
    EdgeKind.BOUND.value: "keep a weakref to the object (weakref.WeakMethod) instead of its bound method",
    EdgeKind.TRACEBACK.value: "keep str(error) instead of the exception, or clear its __traceback__",
    EdgeKind.KEY.value: "key by id or name, or use torch.utils.weak.WeakTensorKeyDictionary",
    EdgeKind.NATIVE.value: "end the C++ owner: leave the context, or drop its handle",
}


def hint(links: Sequence[Link], blamed: int, kind: RootKind, verdict: Verdict) -> str:
    """What to write instead, for the blamed reference of a chain."""
    if not links:
        return "free it through the API that made it: no Python reference holds it"
    link = links[blamed]
    graph = any(below.kind == EdgeKind.GRAD_FN.value for below in links[blamed:])
    if kind in {RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE}:
        return _for_cycle(link, kind)
    if graph and link.kind in {EdgeKind.ITEM.value, EdgeKind.ATTRIBUTE.value, EdgeKind.GLOBAL.value}:
        return "keep .detach() or .item() of it: a kept tensor with a grad_fn holds the whole graph of its step"
    if link.kind in _BY_KIND:
        return _BY_KIND[link.kind].format(holder=link.holder, name=_name(link))
    return _for_place(link, verdict)


def _for_cycle(link: Link, kind: RootKind) -> str:
    fixed = {
        EdgeKind.CELL.value: f"the closure holds {_name(link)}: give it a weakref or a detached value",
        EdgeKind.HOOK.value: "call handle.remove() when done, or let the hook hold a weakref or detached values",
        EdgeKind.GRAD.value: "use torch.autograd.grad instead of backward(create_graph=True), or set .grad = None",
        EdgeKind.GRAD_FN.value: "an output must not hold its own node: save it with save_for_backward, or pack it detached",
        EdgeKind.LOCAL.value: f"`del {_name(link)}` before the function returns",
        EdgeKind.BOUND.value: "keep weakref.WeakMethod instead of the bound method",
    }.get(link.kind, f"make {link.reference} of {link.holder} a weakref, or set it to None when done")
    return fixed if kind is RootKind.NATIVE_CYCLE else f"{fixed}; or gc.collect() each N steps"


def _for_place(link: Link, verdict: Verdict) -> str:
    if link.kind == EdgeKind.LOCAL.value:
        return f"`del {_name(link)}` at the end of the step"
    if verdict is Verdict.LINGERING:
        return f"set {link.holder}{link.reference} to None at the end of the step"
    if link.kind == EdgeKind.ITEM.value:
        return f"bound or clear {link.holder}, or keep a number instead of the tensor"
    return f"clear {link.holder}{link.reference} when its step is over"


def _name(link: Link) -> str:
    return link.reference.strip(".<>") or "it"

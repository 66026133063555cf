"""The one-line remedy for the holder that was found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lifetime.heap.expression import readable
from lifetime.heap.graph import EdgeKind
from lifetime.heap.leak import Leak
from lifetime.heap.model import Leaking, Link, RootKind, Verdict
from lifetime.heap.references import reference
from lifetime.heap.ways import Way
from lifetime.units import bytes_text

MOST_NAMES = 4
CACHED = "<cached result>"
"""How a reader of `lru_cache` names what it holds."""
_KEEP_LESS = "keep .detach() or .item() of it: a kept tensor with a grad_fn keeps the whole graph of its step"
_BY_KIND = {
    EdgeKind.GRAD_FN: "keep {place}.detach(), or its .item(): with its grad_fn it keeps the whole graph of its step",
    EdgeKind.SAVED: "let the pack hook return something detached; backward, or dropping the output, frees what is saved",
    EdgeKind.GRAD: "leaf.grad = None after the harvest, or take the gradient with torch.autograd.grad",
    EdgeKind.HOOK: "keep the handle and call handle.remove(), or give the hook detached values",
    EdgeKind.CELL: "give the closure a detached value or a weakref in place of {name}",
    EdgeKind.CLOSURE: "give the closure a detached value or a weakref",
    EdgeKind.DEFAULT: "pass the tensor in: a default argument lives as long as its function",
    EdgeKind.BOUND: "keep weakref.WeakMethod(...) in place of the bound method",
    EdgeKind.TRACEBACK: "keep str(error) in place of the exception, or set its __traceback__ to None",
    EdgeKind.KEY: "key by id or name, or use torch.utils.weak.WeakTensorKeyDictionary",
    EdgeKind.NATIVE: "leave the context or drop the handle that owns it: no Python reference holds it",
}
_CYCLE = {
    EdgeKind.CELL: "give the closure a weakref or a detached value in place of {name}",
    EdgeKind.HOOK: "handle.remove() when done, or give the hook a weakref or detached values",
    EdgeKind.GRAD: "use torch.autograd.grad in place of backward(create_graph=True), or set .grad = None",
    EdgeKind.GRAD_FN: "an output must not hold its own node: save it with save_for_backward, or pack it detached",
    EdgeKind.LOCAL: "`del {name}` before the function returns",
    EdgeKind.BOUND: "keep weakref.WeakMethod(...) in place of the bound method",
    EdgeKind.TRACEBACK: "`del` the exception or its traceback before the function returns",
}
_ITEMS = frozenset({EdgeKind.ITEM.value, EdgeKind.KEY.value})
_OF_THE_GRAPH = frozenset({EdgeKind.SAVED.value, EdgeKind.NEXT.value, EdgeKind.GRAD_FN.value})
_VARIABLES = frozenset({EdgeKind.LOCAL.value, EdgeKind.GLOBAL.value})
_REACHED = frozenset(RootKind) - {RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE, RootKind.NATIVE}
_STORED = frozenset({EdgeKind.ITEM, EdgeKind.ATTRIBUTE, EdgeKind.GLOBAL, EdgeKind.KEY})
_SUSPENDED = re.compile(r"_frame\.f_locals\['(\w+)'\]$")
"""How a suspended function's variable reads from outside."""
_CTX = "ctx.save_for_backward(...) in place of ctx{reference} = ...: what it saves is freed after backward and makes no cycle"


def hint(leak: Leak, others: Sequence[Way] = ()) -> str:
    """What to write instead, for the blamed reference of a leak and for those that hold it too."""
    if not leak.is_judged:
        return _to_let_go(leak)
    return "; and ".join([_room(leak) + _remedy(leak), *dict.fromkeys(map(_also, others))])


def _room(leak: Leak) -> str:
    """How much a buffer will hold that is far from full."""
    bound = _bound(leak)
    if bound is None:
        return ""
    full = f", about {bytes_text(bound * (leak.would_free // len(leak.cuts)))} when full" if leak.would_free else ""
    return f"{_place(leak)} holds {len(leak.cuts)} and has room for {bound:,}{full}: "


def _bound(leak: Leak) -> int | None:
    """The limit of the container whose items are blamed."""
    holder = leak.cuts[0].source if leak.cuts else None
    return next((node.bound for node in leak.holders if node.id == holder), None)


def _also(way: Way) -> str:
    """The remedy for a second holder."""
    link = way.chain.links[way.link]
    place = readable(way.chain, way.link) or link.holder
    if link.kind in _VARIABLES:
        is_it = way.link == len(way.chain.links) - 1  # else a container, that the next step may need
        return f"`del {_name(link)}` at the end of the step" if is_it else f"clear {_name(link)} too"
    if link.kind in _OF_THE_GRAPH:
        return "drop the graph that saved it: .detach() what is kept of it"
    if EdgeKind(link.kind) is EdgeKind.HOOK or "_hooks" in f"{place}{link.reference}":
        hooks = f"{place}{link.reference}".partition("_hooks")
        return f"handle.remove() the hooks in {hooks[0]}{hooks[1]}"
    return f"clear {place}{'' if link.kind in _ITEMS else link.reference} too"


def _to_let_go(leak: Leak) -> str:
    """What is alive on purpose is left alone, else the reference that would have to go."""
    below = [leak.tensor_status, *((link.leaking, link.reason) for link in reversed(leak.chain.links[leak.blamed + 1 :]))]
    why = next((reason for leaking, reason in below if leaking is Leaking.NO), "")
    link = leak.chain.links[leak.blamed]
    if why or leak.chain.root.kind not in _REACHED:
        return why
    if link.kind in _VARIABLES:
        return f"`del {_name(link)}` lets go of it"
    if link.kind == EdgeKind.GRAD_FN.value:
        return f"keep {_place(leak)}.detach() to let go of it: a grad_fn holds the whole graph"
    return f"dropping {_place(leak)}{link.reference} lets go of it"


def _remedy(leak: Leak) -> str:
    link = leak.chain.links[leak.blamed]
    kind = EdgeKind(link.kind)
    root = leak.chain.root.kind
    if _is_ctx(link):
        return _CTX.format(reference=link.reference)
    if root in {RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE}:
        text = _CYCLE.get(kind, "make {holder}{reference} a weakref, or set it to None when done")
        return _filled(text, link) + ("; or gc.collect() each N steps" if root is RootKind.REFERENCE_CYCLE else "")
    if kind is EdgeKind.LOCAL or (kind is EdgeKind.GLOBAL and len(leak.cuts) > 1):
        return f"`del {', '.join(_variables(leak)) or _name(link)}` at the end of the step"
    above = leak.chain.links[leak.blamed - 1] if leak.blamed else None
    if kind is EdgeKind.GRAD_FN and above is not None and above.kind == EdgeKind.GRAD.value:
        return _CYCLE[EdgeKind.GRAD]
    if any(one.reference == CACHED for one in (above, link) if one is not None):
        return f"{_cache(leak)}.cache_clear(), or a maxsize that fits, or a key that does not change in each step"
    below = {EdgeKind(one.kind) for one in leak.chain.links[leak.blamed :]}
    if kind in _STORED and _is_hook(leak):
        kind = EdgeKind.HOOK
    elif kind in _STORED and EdgeKind.TRACEBACK in below:
        kind = EdgeKind.TRACEBACK
    elif kind in _STORED and EdgeKind.GRAD_FN in below:
        return _KEEP_LESS
    if kind not in _BY_KIND or link.holder_type.endswith("set"):
        return _for_place(leak, link)
    return _filled(_BY_KIND[kind], link, _place(leak))


def _for_place(leak: Leak, link: Link) -> str:
    suspended = _suspended(leak)
    if suspended is not None:
        return f"`del {suspended[1]}` in {suspended[0].holder} before it yields, if it is not needed after"
    place = _place(leak)
    if leak.verdict is Verdict.LINGERING and _bound(leak) is None:
        return f"set {place}{link.reference} to None at the end of the step"
    if link.kind in _ITEMS:
        return f"bound or clear {place}" + (", or keep .item() in place of the tensor" if _is_number(leak) else "")
    return f"clear {place}{link.reference} when its step is over"


def _is_number(leak: Leak) -> bool:
    """Whether the tensor has one element: of a larger one `.detach()` would keep the same bytes."""
    facts = leak.tensor.tensor
    return facts is not None and all(size == 1 for size in facts.shape)


def _suspended(leak: Leak) -> tuple[Link, str] | None:
    """A generator's link, and its variable that leads to the blamed reference: nobody else can rebind it."""
    for link in leak.chain.links[: leak.blamed + 1]:
        found = _SUSPENDED.search(link.reference)
        if found:
            return link, found[1]
    return None


def _place(leak: Leak) -> str:
    """The holder as the program calls it: by its variable and attributes, else by the reference that leads to it."""
    if leak.blamed == 0:
        return leak.chain.links[0].holder
    above = leak.chain.links[leak.blamed - 1]
    return readable(leak.chain, leak.blamed) or f"{above.holder}{above.reference}"


def _cache(leak: Leak) -> str:
    """The cached function: what the link before the cached result refers to."""
    links = leak.chain.links
    index = next(k for k, link in enumerate(links) if link.reference == CACHED)
    return f"{links[index - 1].holder}{links[index - 1].reference}" if index else links[index].holder


def _is_hook(leak: Leak) -> bool:
    """Whether the blamed reference is an item of a dictionary of hooks."""
    above = leak.chain.links[leak.blamed - 1] if leak.blamed else None
    return above is not None and (above.kind == EdgeKind.HOOK.value or above.reference.endswith("_hooks"))


def _is_ctx(link: Link) -> bool:
    """Whether the reference is an attribute that a Function's forward stored on its ctx."""
    return (
        link.kind == EdgeKind.ATTRIBUTE.value and link.holder_type.endswith("Backward") and "torch.autograd" not in link.holder_type
    )


def _variables(leak: Leak) -> list[str]:
    names = sorted({_bare(reference(edge)) for edge in leak.cuts})
    return names[:MOST_NAMES] + (["..."] if len(names) > MOST_NAMES else [])


def _filled(text: str, link: Link, place: str = "") -> str:
    return text.format(holder=link.holder, name=_name(link), reference=link.reference, place=place)


def _name(link: Link) -> str:
    return _bare(link.reference) or "it"


def _bare(text: str) -> str:
    return text.strip(".<>")

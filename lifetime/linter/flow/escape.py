"""How a leaf can outlive the backward that harvests it, as far as the source shows."""

from __future__ import annotations

from lifetime.linter.flow.flow import Leak
from lifetime.linter.flow.values import Key, Kind

CALLEE = "callee"
"""Nothing in the source keeps the leaf: only the graph of the function that was run again can."""
CALLER = "caller"
"""The leaf is an argument: whoever calls holds it."""


def escape(leak: Leak) -> str:
    """`ctx.inputs`, `saved_tensors`, `self.x`, a global, `caller`, or `callee` where only the re-run function could keep it."""
    kept = sorted(path for path, keys in leak.walk.places if any(k.meets(mine) for k in keys for mine in leak.keys))
    found = [*kept, *sorted(filter(None, map(_of_origin, leak.keys)))]
    if any(k.meets(mine) for keys in leak.walk.returned.values() for k in keys for mine in leak.keys):
        found.append(CALLER)
    return found[0] if found else CALLEE


def is_reachable_again(leak: Leak) -> str:
    """The place from which a later backward gets the very same leaf; empty where there is none."""
    for key in sorted(leak.keys, key=lambda k: k.origin.name):
        place = _of_origin(key)
        if place and place != CALLER and key.origin.name not in leak.walk.machine.events.emptied:
            return place
    return next((path for path, keys in sorted(leak.walk.places, key=str) if _stays(path, leak, keys)), "")


def _stays(path: str, leak: Leak, keys: frozenset[Key]) -> bool:
    return path.startswith(("ctx.", "self.")) and any(k.meets(mine) for k in keys for mine in leak.keys)


def _of_origin(key: Key) -> str:
    kind, name = key.origin.kind, key.origin.name
    if name.endswith("saved_tensors"):
        return "saved_tensors"
    if kind is Kind.FIELD:
        return name
    return CALLER if kind is Kind.ARGUMENT else ""

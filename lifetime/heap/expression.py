"""A place in a program as its author would write it: `t.metrics['loss']`, `net.trunk._forward_hooks`."""

from __future__ import annotations

import re

from lifetime.heap.model import Chain, RootKind

LONGEST = 96
_CYCLES = frozenset({RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE, RootKind.NATIVE})
_FRAMES = frozenset({RootKind.LOCAL, RootKind.THREAD, RootKind.SUSPENDED_FRAME})
_TABLE = re.compile(r"\._(?:modules|parameters|buffers)\[(['\"])([^\W\d]\w*)\1\]")
_NUMBERED = re.compile(r"\._modules\[(['\"])(\d+)\1\]")


def readable(chain: Chain, end: int) -> str | None:
    """What the holder of link `end` is called, from the root's variable on; the tensor's name for the number of links.

    None where a reference on the way has no word in Python, or where nobody would read so long a name.
    """
    if chain.root.kind in _CYCLES or not end or not chain.links:
        return None
    first = chain.links[0].reference
    if not chain.root.name.endswith(first):
        return None
    start = first.lstrip(".") if chain.root.kind in _FRAMES else chain.root.name.removeprefix("__main__.")
    text = _NUMBERED.sub(r"[\2]", _TABLE.sub(r".\2", start + "".join(link.reference for link in chain.links[1:end])))
    return text if len(text) <= LONGEST and "<" not in text else None

"""Who holds this now: also what no leak report would mention."""

from __future__ import annotations

from lifetime.heap.graph import History
from lifetime.heap.judge import judge
from tests.heap.builder import heap


def test_what_is_held_on_purpose_is_told_too() -> None:
    snapshot = heap(
        "module m",
        "model net : Net",
        "parameter w",
        "m .net-> net",
        "net ._parameters['w']-> w",
        "w * 64 @0",
        "m .CACHE-> cache",
        "cache ['k']-> t",
        "t * 16 @0",
    )
    told = {
        everything: judge(
            snapshot,
            label=lambda edges: edges,
            prove=None,
            owners=lambda storages: {},
            history=History(0, 0),
            everything=everything,
        )
        for everything in (False, True)
    }
    found = [([link.reference for link in one.chain.links], one.bytes) for one in told[True].survivors]
    assert found == [([".net", "._parameters['w']"], 64), ([".CACHE", "['k']"], 16)]
    assert [one.bytes for one in told[False].survivors] == [16]

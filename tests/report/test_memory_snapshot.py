"""Memory snapshots: stacks by address; a pickle that asks for anything but plain containers is refused unread."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from lifetime.errors import ReportError
from lifetime.report.memory_snapshot import allocations, plain_pickle, read_allocations

STACK = [
    {"filename": "??", "line": 0, "name": "at::empty_cuda"},
    {"filename": "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", "line": 134, "name": "forward"},
    {"filename": "/home/me/train.py", "line": 42, "name": "step"},
]


def snapshot() -> dict[str, Any]:
    """The shape that torch 2.13 records: one segment, a live block, a freed one, and an older block without address."""
    blocks = [
        {"address": 0x7000, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": STACK},
        {"address": 0x7200, "size": 512, "requested_size": 0, "state": "inactive", "frames": []},
        {"size": 1024, "state": "active_allocated", "history": [{"addr": 0x7400, "frames": STACK[2:]}]},
    ]
    segment = {"address": 0x7000, "total_size": 2048, "segment_type": "small", "blocks": blocks, "segment_pool_id": (0, 0)}
    return {"segments": [segment], "device_traces": [[]], "allocator_settings": {"expandable_segments": False}}


def test_stacks_are_found_by_address(tmp_path: Path) -> None:
    target = tmp_path / "snapshot.pickle"
    target.write_bytes(pickle.dumps(snapshot()))
    found = read_allocations(target)
    start, inside, last = found.at(0x7000), found.at(0x7000 + 100), found.at(0x7400)
    assert start is not None and start is inside and start.made_at == "/home/me/train.py:42 in step"
    assert last is not None and last.frames[0].line == 42
    assert found.at(0x7200) is None and found.at(0x7800) is None and found.at(0) is None


class Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_code_in_a_pickle_is_refused_unread(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    data = pickle.dumps({"segments": [Runs(made)]}, protocol=protocol)
    with pytest.raises(ReportError, match="not a pickle of plain containers"):
        plain_pickle(data)
    assert not made.exists()
    pickle.loads(data)
    assert made.exists(), "the pickle is a live one"


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x04", b"not a pickle", b"Pevil\n.", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.", b"(((((", b"\x82\x01."],
)
def test_damaged_pickles_are_one_sentence(data: bytes) -> None:
    with pytest.raises(ReportError, match="not a pickle"):
        plain_pickle(data)


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        {"segments": 3},
        {"segments": [5]},
        {"segments": [{"address": "x", "blocks": []}]},
        {"segments": [{"address": 1, "blocks": [{"size": -4}]}]},
        {"segments": [{"address": 1, "blocks": [{"size": 4, "state": "active_allocated", "frames": "x"}]}]},
    ],
)
def test_other_pickles_are_no_snapshots(value: object) -> None:
    with pytest.raises(ReportError, match="is not a memory snapshot"):
        allocations(value)

"""Memory snapshots: stacks by address; a pickle that asks for anything but plain containers is refused unread."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lifetime.cli.render import run
from lifetime.errors import ReportError, UsageError
from lifetime.heap.model import Report
from lifetime.report import memory_snapshot
from lifetime.report.allocations import NO_STACK, NOT_THERE, REUSED, joined
from lifetime.report.memory_snapshot import Frame, allocations, read_allocations
from lifetime.report.plain_pickle import plain_pickle
from lifetime.report.records import read, to_json
from lifetime.report.render import render
from lifetime.report.words import stack_text
from tests.report.samples import report, survivor

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
    assert start is not None and start == inside and start.made_at == "/home/me/train.py:42 in step"
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


def placed(address: int | None, nbytes: int = 500) -> Report:
    """A report of one survivor whose tensor lies at `address`."""
    one = survivor()
    return report(replace(one, tensor=replace(one.tensor, address=address, storage_bytes=nbytes)))


def test_the_stack_of_the_allocation_stands_beside_the_holder() -> None:
    told = joined(placed(0x7000), allocations(snapshot()))
    (one,) = told.survivors
    assert one.tensor.created_at == "/home/me/train.py:42 in step"
    assert [call.rpartition("/")[2] for call in one.tensor.stack] == ["linear.py:134 in forward", "train.py:42 in step"]
    assert told.gaps == placed(0x7000).gaps, "nothing is missing"
    for ending in (".txt", ".html", ".md", ".sarif", ".json", ".svg", ".dot", ".mmd"):
        assert "train.py" in render(told, ending, "builtin").decode().partition("Leaking: YES")[2 if ending == ".txt" else 0]


def test_what_was_made_under_a_dispatch_mode_keeps_its_place() -> None:
    given = placed(0x7000)
    known = replace(given.survivors[0], tensor=replace(given.survivors[0].tensor, created_at="model.py:3 in forward"))
    (told,) = joined(replace(given, survivors=(known,)), allocations(snapshot())).survivors
    assert told.tensor.created_at == "model.py:3 in forward" and told.tensor.stack


@pytest.mark.parametrize(
    ("address", "nbytes", "why"),
    [
        (0x9000, 500, NOT_THERE),
        (0x7200, 512, NOT_THERE),  # lies in a block that is free
        (0x7000, 400, REUSED),  # the block was asked for with another size
        (0x7400, 4096, REUSED),  # more than the block has
    ],
)
def test_an_allocation_that_is_not_the_tensors_is_said_not_to_be(address: int, nbytes: int, why: str) -> None:
    told = joined(placed(address, nbytes), allocations(snapshot()))
    assert told.survivors[0].tensor.stack == () and told.survivors[0].tensor.created_at is None
    assert told.gaps[-1].why == why and "1 of 1" in told.gaps[-1].where


def test_a_snapshot_without_history_says_how_to_get_one() -> None:
    given = snapshot()
    given["segments"][0]["blocks"][0]["frames"] = []
    assert joined(placed(0x7000), allocations(given)).gaps[-1].why == NO_STACK


def test_a_stack_of_the_backward_engine_is_told_in_its_own_words() -> None:
    given = snapshot()
    given["segments"][0]["blocks"][0]["frames"] = [{"filename": "??", "line": 0, "name": "torch::autograd::MulBackward0::apply"}]
    (one,) = joined(placed(0x7000), allocations(given)).survivors
    assert one.tensor.stack == ("torch::autograd::MulBackward0::apply",) and one.tensor.created_at is None


@pytest.mark.parametrize(
    ("path", "native", "library"),
    [
        ("??", True, False),
        ("/src/aten/src/ATen/native/cuda/Mul.cu", True, False),
        ("/lib/libtorch_python.so.2", True, False),
        ("/home/me/torch/train.py", False, False),
        ("/home/me/c.py", False, False),
        ("/home/me/pytorch/torch/nn/modules/module.py", False, True),
        ("/tmp/ipykernel_7/123.py", False, False),
    ],
)
def test_frames_of_torch_and_of_the_user(path: str, native: bool, library: bool) -> None:
    frame = Frame(path, 7, "f")
    assert frame.is_native is native
    given = snapshot()
    given["segments"][0]["blocks"][0]["frames"] = [{"filename": path, "line": 7, "name": "f"}]
    (one,) = joined(placed(0x7000), allocations(given)).survivors
    assert (one.tensor.created_at is None) is (native or library)


def test_render_joins_a_snapshot_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(to_json(placed(0x7000)))
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot()))
    given = [str(tmp_path / "r.json"), "--memory-snapshot", str(tmp_path / "s.pickle")]
    assert run([*given, "-o", str(tmp_path / "page.html"), "-o", str(tmp_path / "new.json")]) == 0
    assert "Allocated by" in (tmp_path / "page.html").read_text()
    assert read(tmp_path / "new.json").survivors[0].tensor.stack
    assert run(given) == 0 and "allocated by" in capsys.readouterr().out


def test_render_refuses_what_a_snapshot_cannot_be_joined_with(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(report()))
    (tmp_path / "s.pickle").write_bytes(pickle.dumps(snapshot()))
    (tmp_path / "bad.pickle").write_bytes(pickle.dumps({"segments": [Runs(tmp_path / "made")]}))
    one = str(tmp_path / "r.json")
    with pytest.raises(ReportError, match="no addresses"):
        run([one, "--memory-snapshot", str(tmp_path / "s.pickle")])
    with pytest.raises(UsageError, match="one process"):
        run([one, one, "--memory-snapshot", str(tmp_path / "s.pickle")])
    with pytest.raises(ReportError, match="plain containers"):
        run([one, "--memory-snapshot", str(tmp_path / "bad.pickle")])
    with pytest.raises(ReportError, match="cannot read"):
        run([one, "--memory-snapshot", str(tmp_path / "none.pickle")])
    assert not (tmp_path / "made").exists()


PROGRAM = """
import pickle, torch
kept, weight = [], torch.ones(300, requires_grad=True)
for step in range(6):
    kept.append(torch.ones(300))
    (weight * step).sum().backward()
frames = [{"filename": "/home/me/train.py", "line": 42, "name": "step"}]
block = {"size": 1536, "requested_size": 1200, "state": "active_allocated", "frames": frames}
segment = {"address": 0, "blocks": [{**block, "address": one.data_ptr()} for one in kept]}
with open("snapshot.pickle", "wb") as file:
    pickle.dump({"segments": [segment], "device_traces": []}, file)
"""


def test_a_traced_program_and_the_snapshot_that_it_wrote_meet_by_address(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    lifetime = [sys.executable, "-m", "lifetime"]
    options = ["--fail-on", "never", "--step", "backward", "--steps", "5", "--addresses", "-o", "r.json"]
    trace = [*lifetime, "trace", *options, "train.py"]
    told = subprocess.run(trace, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert told.returncode == 0, told.stderr
    render = [*lifetime, "render", "r.json", "--memory-snapshot", "snapshot.pickle"]
    shown = subprocess.run(render, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "__main__.kept" in shown.stdout and "/home/me/train.py:42 in step" in shown.stdout
    assert shown.stdout.count("allocated by") == 1


def test_a_pickle_that_names_one_list_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_snapshot, "MOST_BLOCKS", 1000)
    block = {"address": 1, "size": 1, "state": "inactive"}
    segment = {"address": 1, "blocks": [block] * 300}
    with pytest.raises(ReportError, match="more than 1,000 blocks"):
        allocations(plain_pickle(pickle.dumps({"segments": [segment] * 300})))


@pytest.mark.parametrize("frame", [5, {"line": -1, "name": "f", "filename": "x"}, {"line": "1", "name": "f", "filename": "x"}])
def test_a_stack_that_is_none_is_refused_when_it_is_asked_for(frame: object) -> None:
    given = snapshot()
    given["segments"][0]["blocks"][0]["frames"] = [frame]
    with pytest.raises(ReportError, match="is not a memory snapshot"):
        joined(placed(0x7000), allocations(given))


def test_a_run_of_calls_in_torch_is_a_line_and_a_count() -> None:
    layers = [f"/env/site-packages/torch/nn/modules/m{k}.py:1 in forward" for k in range(9)]
    facts = replace(survivor().tensor, stack=(*layers, "model.py:3 in forward", layers[0], "train.py:7 in step"))
    told = (layers[0], "... 8 more calls in torch", "model.py:3 in forward", layers[0], "train.py:7 in step")
    assert stack_text(facts) == told
    assert stack_text(facts, 2) == (*told[:2], "+ 3 more")

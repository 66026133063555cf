"""The small parts: graph pools, ranks, the collector's setting, deaths in collections, the split of the command line."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from lifetime.cli.trace_options import parser, split
from lifetime.heap.graph import StorageId
from lifetime.tracer import graphpool, ranks
from lifetime.tracer.collected import Collected
from lifetime.tracer.gcmode import Collector

SNAPSHOT = [
    {"address": 0x7000, "total_size": 0x1000, "segment_pool_id": (0, 0), "blocks": []},
    {"address": 0x9000, "total_size": 0x2000, "segment_pool_id": (0, 3), "blocks": []},
    {"address": 0xF000, "total_size": 0x1000, "blocks": []},
]


@pytest.mark.parametrize(
    ("address", "pool"),
    [(0x7000, None), (0x8000, None), (0x9000, (0, 3)), (0xAFFF, (0, 3)), (0xB000, None), (0xF800, None), (0, None)],
)
def test_a_block_lies_in_the_graphs_pool(address: int, pool: graphpool.Pool | None) -> None:
    assert graphpool.pool_of(SNAPSHOT, address) == pool


def test_one_process_writes_the_file_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (ranks.own_file("r.json"), ranks.own_picture("g.svg"), ranks.rank(), ranks.world_size()) == ("r.json", "g.svg", 0, 1)


def test_each_rank_writes_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "3")
    assert ranks.own_file(str(tmp_path / "report")) == str(tmp_path / "report" / "rank-00003.json")
    assert (tmp_path / "report").is_dir() and ranks.own_picture("a/g.svg") == "a/g-00003.svg"


def test_nonsense_in_the_environment_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "many")
    monkeypatch.setenv("RANK", "-1")
    assert (ranks.rank(), ranks.world_size()) == (0, 1)


@pytest.fixture
def thresholds() -> Any:
    before = gc.get_threshold(), gc.isenabled()
    yield before[0]
    gc.set_threshold(*before[0])
    (gc.enable if before[1] else gc.disable)()


def test_off_is_only_that_nothing_starts_by_itself(thresholds: tuple[int, ...]) -> None:
    collector = Collector("off")
    collector.hold()
    assert gc.isenabled() and gc.get_threshold()[0] == 0 and gc.get_threshold()[1:] == thresholds[1:]
    started: list[str] = []
    gc.callbacks.append(lambda phase, info: started.append(phase))
    try:
        kept = [[] for _ in range(50_000)]  # type: ignore[var-annotated]
    finally:
        gc.callbacks.pop()
    assert not started and len(kept) == 50_000
    collector.release()
    assert gc.get_threshold() == thresholds and collector.state().mode == "off"


def test_what_the_program_set_meanwhile_stays(thresholds: tuple[int, ...]) -> None:
    collector = Collector("off")
    collector.hold()
    gc.set_threshold(123, 4, 5)
    gc.disable()
    collector.release()
    assert gc.get_threshold() == (123, 4, 5) and not gc.isenabled()


def test_as_is_touches_nothing(thresholds: tuple[int, ...]) -> None:
    collector = Collector("as-is")
    collector.hold()
    assert gc.get_threshold() == thresholds
    collector.release()
    assert gc.get_threshold() == thresholds


class Thing:
    pass


class Reference:
    def __init__(self, thing: Thing) -> None:
        self.weak = weakref.ref(thing)

    def expired(self) -> bool:
        return self.weak() is None


def test_deaths_inside_a_collection_are_counted_and_others_are_not() -> None:
    collected = Collected()
    collected.install()
    try:
        cyclic, plain = Thing(), Thing()
        cyclic.me = cyclic  # type: ignore[attr-defined]
        collected.watch([(StorageId(1), Reference(cyclic)), (StorageId(2), Reference(plain))])
        del plain, cyclic
        gc.collect()
        assert collected.count == 1 and collected.take() == {1}
        gc.collect()
        assert collected.count == 1 and collected.take() == set()
    finally:
        collected.remove()
    assert collected._on_collection not in gc.callbacks


@pytest.mark.parametrize(
    ("line", "ours", "rest"),
    [
        ("train.py --steps 3", [], ["train.py", "--steps", "3"]),
        ("--steps 3 train.py -o x", ["--steps", "3"], ["train.py", "-o", "x"]),
        ("--steps=3 -o r.json train.py", ["--steps=3", "-o", "r.json"], ["train.py"]),
        ("--stop -m pkg.train --stop x", ["--stop", "-m", "pkg.train"], ["--stop", "x"]),
        ("-mpkg.train -m y", ["-mpkg.train"], ["-m", "y"]),
        ("--stop -- -odd.py -x", ["--stop"], ["-odd.py", "-x"]),
        ("--stop -", ["--stop"], ["-"]),
        ("--no-on-oom train.py", ["--no-on-oom"], ["train.py"]),
        ("", [], []),
    ],
)
def test_options_end_at_the_script(line: str, ours: list[str], rest: list[str]) -> None:
    assert split(line.split(), parser()) == (ours, rest)

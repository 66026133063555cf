"""What a look at the heap costs, beside its peers, in one run: `python -m tests.bench_heap [--objects N...] [--fan N...]`.

Every row is a process of its own: a heap of small dictionaries and lists, six steps that each append a graph to a kept list, one
capture with owners and proof. `wall` needs a quiet machine; `cpu` is the processor time of the searching child, on any machine.
Peers are asked for one path to the same tensor, without owners or proof, each in a fork and for `--limit` seconds at most.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import resource
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

STEPS = 7
OBJECTS = (300_000, 1_000_000, 3_000_000)
FANS = (1_000, 100_000)
FAN_OBJECTS = 300_000
BOUNDARY_MS = {1_000_000: 5.0, 3_000_000: 15.0}
CAPTURE_S = {1_000_000: 1.0, 3_000_000: 2.5}
FAN_S = {100_000: 3.0}
PAUSED_S = 0.1
OWN_MB = 100.0
"""The targets."""
MEGABYTE = 1 << 20
SLOW_BYTES = 256 * MEGABYTE


class Keeper:
    """Who holds too much."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.fan: list[Any] = []


HEAP: list[object] = []
KEEPER = Keeper()


def build(objects: int) -> None:
    HEAP.extend({"a": [i]} for i in range(objects // 2))


def step(index: int, weights: Any, fan: int) -> None:
    import torch

    result = (torch.full((64, 64), float(index)) * weights).exp().sum()
    KEEPER.kept.append(result)
    if index == 3:
        KEEPER.fan = [{"held": result} for _ in range(fan)]


def row(objects: int, fan: int, limit: float) -> dict[str, Any]:
    """The measurements of one heap."""
    import torch

    from lifetime.heap import capture, hidden
    from lifetime.heap.graph import History
    from lifetime.heap.watch import Watch

    hidden.find_handlers()  # as a trace does when it is armed
    gc.disable()
    build(objects)
    gc.collect()
    weights, watch = torch.ones(64, 64, requires_grad=True), Watch()
    boundaries = []
    for index in range(STEPS):
        step(index, weights, fan)
        boundaries.append(1000 * _seconds(lambda index=index: watch.observe(index)))  # type: ignore[misc]
    big = torch.zeros(SLOW_BYTES, dtype=torch.uint8)
    alone = _seconds(lambda: big.fill_(1))
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "child.json")
        _measured(capture, notes)
        start = time.perf_counter()
        pending = capture.look(watch.alive(), History(1, STEPS - 1, watch.deaths()), prove=True, deadline_s=300.0)
        beside = _seconds(lambda: big.fill_(2))
        look = pending.wait()
        wall = time.perf_counter() - start
        child = json.loads(notes.read_text())
    leak = look.survivors[0]
    return {
        "objects": objects, "fan": fan, "first_ms": boundaries[0], "boundary_ms": statistics.median(boundaries[1:]),
        "wall_s": wall, "paused_s": pending.paused_s, **child, "alone_s": alone, "beside_s": beside,
        "found": f"{leak.verdict.value}, {leak.cut.proof.value}, owners {'exact' if _exact(leak.owners) else 'not exact'}",
        "peers": {name: _limited(peer, limit) for name, peer in PEERS.items()},
    }  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _exact(owners: Any) -> bool:
    return owners is not None and all(one.named == one.counted for one in (owners.wrapper, owners.tensor, owners.storage))


def _measured(capture: Any, notes: Path) -> None:
    """Have the child write down what it cost: its own address space, the pages that it and its helpers touched, its time."""
    look = capture._look

    def measured(*arguments: Any) -> Any:
        before, size = _usage(), _status("VmSize")
        answer = look(*arguments)
        after = _usage()
        notes.write_text(
            json.dumps(
                {
                    "own_mb": (_status("VmPeak") - size) / 1024,
                    "touched_mb": (after[0] - before[0]) * resource.getpagesize() / MEGABYTE,
                    "helpers_mb": (after[1] - before[1]) * resource.getpagesize() / MEGABYTE,
                    "cpu_s": after[2] - before[2],
                }
            )
        )
        return answer

    capture._look = measured


def _usage() -> tuple[int, int, float]:
    own, helpers = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_minflt, helpers.ru_minflt, own.ru_utime + own.ru_stime


def _status(key: str) -> int:
    """Kilobytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1])


def _one_scan() -> object:
    return len(gc.get_referrers(KEEPER.kept[3]))


def _objgraph() -> object:
    objgraph = importlib.import_module("objgraph")
    return objgraph.find_backref_chain(KEEPER.kept[3], objgraph.is_proper_module)


def _refcycle() -> object:
    return importlib.import_module("refcycle").snapshot().ancestors(KEEPER.kept[3])


def _guppy() -> object:
    return str(importlib.import_module("guppy").hpy().iso(KEEPER.kept[3]).shpaths)


PEERS: dict[str, Callable[[], object]] = {
    "one gc.get_referrers": _one_scan,
    "objgraph.find_backref_chain": _objgraph,
    "refcycle ancestors": _refcycle,
    "guppy shpaths": _guppy,
}


def _limited(work: Callable[[], object], limit: float) -> float | None | str:
    """The seconds that a fork of this process took, None where it took too long, a text where it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            start = time.perf_counter()
            work()
            answer = repr(time.perf_counter() - start)
        except BaseException as error:
            answer = repr(type(error).__name__)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], limit)[0]
    found = json.loads(os.read(reading, 4096).decode().replace("'", '"') or '"died"') if ready else None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    return found


def idle(pairs: int, steps: int) -> tuple[list[float], float]:
    """How much more processor time a small MLP's steps take, in per cent, armed but not looking: one number a pair
    of blocks; and the milliseconds of a step."""
    import torch

    from lifetime.tracer.options import Options
    from lifetime.tracer.trace import Trace

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)]
    model, batch = torch.nn.Sequential(*layers), torch.ones(128, 256)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def block(count: int = steps) -> float:
        start = time.process_time()
        for _ in range(count):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        return time.process_time() - start

    def armed() -> float:
        trace = Trace(Options(start_step=1 << 60), lambda report, moment: None)
        trace.arm()
        block(2)  # the first boundary looks once for the program's optimizers
        took = block()
        trace.finish()
        return took

    alone = 1000 * block() / steps
    found = []
    for number in range(pairs):
        with_us = armed() if number % 2 else None
        without = block()
        found.append(100 * ((armed() if with_us is None else with_us) / without - 1))
    return found, alone


def _table(rows: Sequence[dict[str, Any]]) -> None:
    heads = ("objects", "fan-in", "boundary ms", "wall s", "cpu s", "paused s", "own MB", "COW MB", "helpers MB", "beside", "")
    print(("{:>10}" * 2 + " {:>11}" + " {:>7}" * 2 + " {:>9}" * 5 + "  {}").format(*heads))
    for one in rows:
        print(
            f"{one['objects']:>10}{one['fan']:>10}{one['boundary_ms']:>12.2f} {one['wall_s']:>7.2f} {one['cpu_s']:>7.2f}"
            f" {one['paused_s']:>9.3f} {one['own_mb']:>9.0f} {one['touched_mb']:>9.0f} {one['helpers_mb']:>9.0f}"
            f" {one['beside_s'] / one['alone_s']:>8.1f}x  {one['found']}{_missed(one)}"
        )
        for name, took in one["peers"].items():
            told = (
                f"{took:8.2f} s, {took / one['wall_s']:.1f} times our capture" if isinstance(took, float) else took or "no answer"
            )
            print(f"{'':>20}  {name:28} {told}")


def _missed(one: dict[str, Any]) -> str:
    """The targets that the row missed."""
    fan, objects = one["fan"], one["objects"]
    checks = {
        "capture": one["wall_s"] <= (FAN_S.get(fan, one["wall_s"]) if fan else CAPTURE_S.get(objects, one["wall_s"])),
        "boundary": bool(fan) or one["boundary_ms"] <= BOUNDARY_MS.get(objects, one["boundary_ms"]),
        "paused": one["paused_s"] <= PAUSED_S,
        "own": one["own_mb"] <= OWN_MB,
    }
    missed = [name for name, met in checks.items() if not met]
    return f"  MISSED: {', '.join(missed)}" if missed else ""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--objects", type=int, nargs="*", default=OBJECTS)
    parser.add_argument("--fan", type=int, nargs="*", default=FANS)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each peer")
    parser.add_argument("--pairs", type=int, default=30, help="pairs of blocks of the idle measurement, 0 for none")
    parser.add_argument("--row", type=int, nargs=2, help=argparse.SUPPRESS)
    chosen: Any = parser.parse_args(arguments)
    if chosen.row:
        print(json.dumps(row(chosen.row[0], chosen.row[1], chosen.limit)))
        return 0
    wanted = [(objects, 0) for objects in chosen.objects] + [(FAN_OBJECTS, fan) for fan in chosen.fan]
    rows = []
    for objects, fan in wanted:
        again = ["--row", str(objects), str(fan), "--limit", str(chosen.limit)]
        done = subprocess.run([sys.executable, "-m", "tests.bench_heap", *again], stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    _table(rows)
    if chosen.pairs:
        costs, alone = idle(chosen.pairs, 50)
        spread = statistics.quantiles(costs, n=4)
        told = f"{statistics.median(costs):+.2f} % (quartiles {spread[0]:+.2f} to {spread[2]:+.2f})"
        print(f"armed but idle: {told} of a step of {alone:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`lifetime trace` from end to end, on programs that import torch. Each run costs seconds: few runs, many questions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lifetime.heap.model import Report, RootKind, SiteVerdict, Verdict
from lifetime.report.records import read

REPO = Path(__file__).resolve().parent.parent.parent
TRACE = [sys.executable, "-m", "lifetime", "trace"]


class Run:
    def __init__(self, done: subprocess.CompletedProcess[str], report: Path) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.report: Report | None = read(report) if report.is_file() else None

    @property
    def verdicts(self) -> list[str]:
        return [one.verdict.value for one in self.report.survivors] if self.report else []


def trace(folder: Path, source: str, *options: str, command: list[str] | None = None) -> Run:
    (folder / "train.py").write_text(textwrap.dedent(source))
    line = [*(command or TRACE), *options, "-o", "r.json", "train.py"]
    environment = {**os.environ, "LIFETIME_CACHE_DIR": os.environ.get("LIFETIME_CACHE_DIR", "")}
    if not environment["LIFETIME_CACHE_DIR"]:
        del environment["LIFETIME_CACHE_DIR"]
    return Run(subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=240, env=environment), folder / "r.json")


LOOP = """
    import gc, sys, torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    KEPT = []
    for n in range(12):
        optimizer.zero_grad()
        loss = model(torch.full((2, 4), float(n))).sum()
        loss.backward()
        optimizer.step()
        KEPT.append(loss)
    print("end", gc.isenabled(), gc.get_threshold(), len(sys.meta_path), torch.rand(1).item())
"""


def test_a_leaking_loop(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(textwrap.dedent(LOOP))
    plain = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    run = trace(tmp_path, LOOP, "--gc", "off", "--render", "g.svg", "--render", "g.txt")
    assert (run.code, run.out) == (1, plain.stdout), run.err
    assert run.report is not None and [step.index for step in run.report.steps] == list(range(7))
    assert run.verdicts.count("growing") == 1
    leak = run.report.survivors[0]
    assert leak.verdict is Verdict.GROWING and leak.chain.root.kind is RootKind.GLOBAL
    assert "__main__.KEPT" in (leak.chain.expression or "") and "KEPT" in run.err
    assert run.report.environment.command == ("train.py",) and run.report.environment.gc.mode == "off"
    assert (tmp_path / "g.svg").read_text().startswith("<") and "KEPT" in (tmp_path / "g.txt").read_text()


def test_the_program_goes_on_after_the_report_or_is_ended(tmp_path: Path) -> None:
    run = trace(tmp_path, LOOP, "--stop", "--steps", "3", "--start-step", "2", "--fail-on", "never")
    assert (run.code, run.out) == (0, ""), run.err
    assert run.report is not None and [step.index for step in run.report.steps] == [2, 3, 4, 5]


def test_a_program_that_fails_keeps_its_code_its_traceback_and_its_report(tmp_path: Path) -> None:
    source = """
        import torch
        KEPT = []

        def step(n):
            KEPT.append(torch.ones(3, 7))
            if n == 5:
                raise RuntimeError("diverged")

        for n in range(9):
            step(n)
    """
    run = trace(tmp_path, source, "--step", "step")
    assert run.code == 1
    lines = [line for line in run.err.splitlines() if not line.lstrip().startswith(("^", "~"))]
    start = lines.index("Traceback (most recent call last):")
    script = tmp_path / "train.py"
    assert lines[start + 1 : start + 6] == [
        f'  File "{script}", line 11, in <module>',
        "    step(n)",
        f'  File "{script}", line 8, in step',
        '    raise RuntimeError("diverged")',
        "RuntimeError: diverged",
    ]
    assert run.report is not None and len(run.report.steps) == 5 and run.verdicts == ["growing"]


@pytest.mark.parametrize(
    ("ending", "code", "steps"),
    [("os._exit(7)", 7, 5), ("sys.exit(3)", 3, 5), ("os._exit(0)", 0, 5), ("os._exit(7)", 7, 9)],
    ids=["os._exit", "sys.exit", "os._exit with 0", "os._exit after the last step asked for"],
)
def test_however_it_ends_the_report_is_written(ending: str, code: int, steps: int, tmp_path: Path) -> None:
    source = f"""
        import os, sys, torch
        KEPT = []
        def step(): KEPT.append(torch.ones(3))
        for n in range({steps}): step()
        {ending}
    """
    run = trace(tmp_path, source, "--step", "step")
    assert run.code == code and run.verdicts == ["growing"]


def test_workers_do_not_report(tmp_path: Path) -> None:
    source = """
        import os, torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self): return 32
            def __getitem__(self, n): return torch.full((4,), float(n))

        def step(batch): return batch.sum().item()

        if __name__ == "__main__":
            if os.fork() == 0:
                for batch in range(8): step(torch.ones(2))
                print("child", flush=True)
                os._exit(0)
            os.wait()
            total = 0.0
            for batch in DataLoader(Numbers(), batch_size=4, num_workers=2):
                total += step(batch)
            print(total)
    """
    run = trace(tmp_path, source, "--step", "step")
    assert (run.code, run.out) == (0, "child\n1984.0\n"), run.err
    assert run.report is not None and len(run.report.steps) == 7 and run.err.count("lifetime: ") == 1


def test_out_of_memory_and_the_peak(tmp_path: Path) -> None:
    source = """
        import torch
        BALLAST = [torch.zeros(300_000)]
        weight = torch.ones(50_000, requires_grad=True)
        for n in range(4):
            (weight * float(n)).exp().sum().backward()
        held = torch.ones(200_000)
        torch.empty(1 << 50)
    """
    run = trace(tmp_path, source, "--step", "backward", "--at-peak", "--deep")
    assert run.code == 1 and "can't allocate memory" in run.err and "out of memory; who held what" in run.err
    at_the_end, fullest = read(tmp_path / "r.oom.json"), read(tmp_path / "r.peak.json")
    expressions = [one.chain.expression for one in at_the_end.survivors]
    assert expressions[:2] == ["__main__.BALLAST[0]", "__main__.held"]
    assert any(one.chain.expression == "__main__.BALLAST[0]" for one in fullest.survivors)
    assert sum(one.bytes for one in fullest.survivors) >= 1_400_000


def test_the_seed_story_on_megatrons_own_code(tmp_path: Path) -> None:
    driver = (REPO / "fixtures" / "peers" / "megatron_checkpoint.py").read_text()
    run = trace(tmp_path, driver)
    assert run.code == 1 and run.report is not None, run.err
    (site,) = [one for one in run.report.sites if one.path.endswith("tensor_parallel/random.py") and one.hits]
    assert (site.code, site.verdict, site.hits) == ("LT001", SiteVerdict.CONFIRMED, 14)
    # Two layers, each with an input gradient of 256 x 64 float32.
    assert (site.bytes_per_step, site.outlived_call_bytes) == (2 * 256 * 64 * 4,) * 2 and site.readers == ()
    (cycle,) = [one for one in run.report.survivors if one.verdict is Verdict.UNTIL_GC]
    assert site.survivors == (cycle.fingerprint,) and cycle.cut.proof.value == "proved"
    assert [link.reference for link in cycle.chain.links] == [".grad_fn", ".out"]


@pytest.mark.slow
def test_under_torchrun_each_rank_writes_its_own(tmp_path: Path) -> None:
    source = """
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        KEPT = []
        for n in range(9):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 4)).sum()
            loss.backward()
            optimizer.step()
            KEPT.append(loss)
        dist.destroy_process_group()
    """
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "lifetime", "trace"]
    run = trace(tmp_path, source, command=torchrun)
    assert run.code == 0, run.err
    reports = [read(tmp_path / "r.json" / f"rank-{rank:05d}.json") for rank in range(2)]
    assert [report.environment.rank for report in reports] == [0, 1]
    assert all(report.environment.world_size == 2 for report in reports)
    assert all(one.survivors[0].verdict is Verdict.GROWING for one in reports)


@pytest.mark.slow
def test_two_runs_give_the_same_report(tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        trace(tmp_path, (REPO / "fixtures" / "leaks" / "loss_history.py").read_text(), "--gc", "off")
        texts.append((tmp_path / "r.json").read_text())
    assert texts[0] == texts[1] and json.loads(texts[0])["survivors"]


def test_a_look_that_took_too_long_says_how_to_give_it_more_time(tmp_path: Path) -> None:
    source = """
        import torch
        KEPT = []
        def step(): KEPT.append(torch.ones(3))
        for n in range(5): step()
    """
    run = trace(tmp_path, source, "--step", "step", "--deadline", "0.001")
    assert run.code == 2 and "nothing could be judged: deadline" in run.err and "--deadline 120" in run.err

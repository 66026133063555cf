"""What being traced costs: an armed but idle step, and the import of a package in which nothing is found.

    python tests/bench_tracer.py

Paired: each round measures both sides in turn; printed is the median of the ratios. Not a test: no timing is asserted.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import torch

from lifetime.tracer import probe
from lifetime.tracer.detect import Detector
from lifetime.tracer.options import Options
from lifetime.tracer.trace import Trace

ROUNDS, STEPS, MODULES = 21, 300, 1000


def seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - start) / STEPS


def idle_step() -> None:
    torch.set_num_threads(1)
    sizes = [256, 256, 256, 10]
    layers = [torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(64, 256)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    trace = Trace(Options(start_step=1 << 60), lambda report, moment: None)
    named = probe.boundary(step)
    probe.on_step = trace._on_step
    rounds: dict[str, list[float]] = {"noise": [], "named": [], "detected": []}
    for _ in range(ROUNDS):
        plain = seconds(step)
        rounds["noise"].append(seconds(step) / plain)
        rounds["named"].append(seconds(named) / plain)
        detector = Detector(None, trace._on_step, trace.session.is_quiet)
        detector.install()
        for _ in range(2):
            step()
        rounds["detected"].append(seconds(step) / plain)
        detector.remove()
    print(f"idle step of {plain * 1e6:.0f} us: " + ", ".join(f"{k} x{statistics.median(v):.4f}" for k, v in rounds.items()))


PROGRAM = """
    import sys, time
    if sys.argv[1] == "hooked":
        from lifetime.tracer.imports import Hook
        from lifetime.tracer.loader import Rewriter
        rewriter = Rewriter()
        Hook(rewriter, rewriter.clean.__contains__).install()
    import gc
    gc.collect(), gc.freeze()  # what the tool itself imported is a handful beside torch: it shall not count
    start = time.perf_counter()
    import package
    print(time.perf_counter() - start)
    if sys.argv[1] == "hooked":
        rewriter.clean.save()
"""


def imports() -> None:
    """Both sides start from compiled files; the hook's own first pass is told apart."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "package"
        package.mkdir()
        source = Path(textwrap.__file__).read_text()
        for n in range(MODULES):
            (package / f"m{n}.py").write_text(source)
        (package / "__init__.py").write_text("".join(f"from . import m{n}\n" for n in range(MODULES)))
        (Path(folder) / "run.py").write_text(textwrap.dedent(PROGRAM))
        _import(folder, "plain")
        rounds = []
        for _ in range(9):
            plain, hooked = (_import(folder, how) for how in ("plain", "hooked"))
            rounds.append(hooked / plain)
        print(f"import of {MODULES} clean modules in {plain:.3f} s: x{statistics.median(rounds):.3f}, the first x{rounds[0]:.3f}")


def _import(folder: str, how: str) -> float:
    environment = {"PYTHONPATH": folder, "LIFETIME_CACHE_DIR": f"{folder}/cache", "PATH": ""}
    done = subprocess.run([sys.executable, f"{folder}/run.py", how], capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


if __name__ == "__main__":
    idle_step()
    imports()

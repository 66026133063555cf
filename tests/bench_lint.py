"""How long the linter takes, beside its peers, in one run: `python -m tests.bench_lint TREE [--runs N] [--slow]`.

Every number is the best of several runs: wall time, processor time of all processes, peak memory of the largest. `--slow` adds
flake8, which takes minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CLEAN = "import torch\n\n\ndef scaled(x: torch.Tensor, by: float) -> torch.Tensor:\n    return x * by\n"
LIMITS = {"cold": 1.0, "cached": 0.2, "clean file": 0.040}
"""Seconds; that of the clean file is above a bare start of the interpreter."""


class Cost(NamedTuple):
    seconds: float
    processor: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.seconds:8.3f} s  {self.processor:8.3f} s cpu {self.megabytes:6.0f} MB"


def measure(command: Sequence[str], cwd: Path) -> Cost:
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    memory = usage.ru_maxrss / (1024 if sys.platform == "linux" else 1024 * 1024)
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, memory)


def best(command: Sequence[str], cwd: Path, runs: int) -> Cost:
    return min(measure(command, cwd) for _ in range(runs))


def peers(slow: bool) -> dict[str, list[str]]:
    """Commands of other linters that are installed here."""
    found = {}
    ruff = shutil.which("ruff", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if ruff:
        found["ruff, bugbear rules"] = [ruff, "check", "--no-cache", "--isolated", "--select", "B", "--quiet", "."]
        found["ruff, default rules"] = [ruff, "check", "--no-cache", "--isolated", "--quiet", "."]
    if slow and importlib.util.find_spec("flake8"):
        found["flake8 -j2"] = [sys.executable, "-m", "flake8", "--isolated", "--select", "F", "-j2", "."]
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args(arguments)
    lint = [sys.executable, "-m", "lifetime", "lint"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "clean.py").write_text(CLEAN)
        bare = best([sys.executable, "-c", "pass"], Path(folder), 20)
        clean = best([*lint, "clean.py"], Path(folder), 20)
        cold = best([*lint, "--no-cache", "."], options.tree, options.runs)
        os.environ["LIFETIME_CACHE_DIR"] = str(Path(folder) / "cache")
        measure([*lint, "."], options.tree)
        cached = best([*lint, "."], options.tree, options.runs)
    ours = {
        "cold": cold,
        "cached": cached,
        "clean file": Cost(clean.seconds - bare.seconds, clean.processor - bare.processor, clean.megabytes),
    }
    for name, cost in ours.items():
        print(f"lifetime, {name:<12} {cost}  (limit {LIMITS[name]:.3f} s)")
    for name, command in peers(options.slow).items():
        cost = best(command, options.tree, 1 if name.startswith("flake8") else options.runs)
        print(f"{name:<22} {cost}  {cost.seconds / cold.seconds:6.2f} x lifetime cold")
    return int(any(cost.seconds > LIMITS[name] or cost.megabytes > 100 for name, cost in ours.items()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

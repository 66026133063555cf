"""Runs of the program, one process each, with and without the fixes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifetime.errors import LifetimeError
from lifetime.report.shapes import decode
from lifetime.verify.model import ArmRun

SHOWN_LINES = 12


@dataclass(frozen=True)
class Order:
    """What to run: the program as `SCRIPT ARG...` or `-m MODULE ARG...`, and which findings' fixes the second arm has."""

    program: tuple[str, ...]
    select: tuple[str, ...]
    sites: tuple[str, ...] = ()
    timeout_s: float = 3600.0


@dataclass(frozen=True)
class Outcome:
    run: ArmRun
    values: tuple[float, ...] | None = None


def run(order: Order, *, apply: bool, wanted: tuple[int, str] | None = None) -> Outcome:
    """One run. With `wanted` (a step and a parameter) the values of that gradient come back too.

    Raises:
        LifetimeError: the program fails, imports no torch, or a fix cannot be applied.
    """
    with tempfile.TemporaryDirectory(prefix="lifetime-") as folder:
        out, slip = Path(folder) / "run.json", Path(folder) / "order.json"
        terms = {"apply": apply, "select": order.select, "sites": order.sites, "wanted": wanted, "out": str(out)}
        slip.write_text(json.dumps(terms))
        command = [sys.executable, "-m", "lifetime.tracer.arm", str(slip), *order.program]
        code, said = _finish(command, order.timeout_s)
        arm = "with the fix" if apply else "without the fix"
        if code:
            raise LifetimeError(f"the program ends with exit code {code} {arm}{_quoted(said)}", "it must run to its end both ways")
        return _read(out, arm)


def _finish(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Exit code and the end of what was printed. The hash seed is fixed: set order must not make two runs differ."""
    environment = {"PYTHONHASHSEED": "0", **os.environ}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, env=environment)
    except subprocess.TimeoutExpired:
        raise LifetimeError(f"the program did not end in {timeout_s:.0f} s", "give it fewer steps") from None
    return done.returncode, done.stderr or done.stdout


def _read(out: Path, arm: str) -> Outcome:
    if not out.exists():
        raise LifetimeError(f"the program left no record {arm}", "does it end by os._exit or run in another process?")
    record: dict[str, Any] = json.loads(out.read_text())
    if record["refused"]:
        raise LifetimeError(f"a fix cannot be applied: {record['refused'][0]}")
    if record["run"] is None:
        raise LifetimeError(f"the program never imports torch {arm}")
    values = record["values"]
    return Outcome(decode(ArmRun, record["run"], "run"), tuple(values) if values is not None else None)


def _quoted(said: str) -> str:
    lines = said.strip().splitlines()[-SHOWN_LINES:]
    return ":\n" + "\n".join(f"  | {line}" for line in lines) if lines else ""

"""Layout engines: the system's `dot`, the embedded `graphviz-pure`, or our own tiny layout, so that a picture never fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lifetime.errors import LifetimeError

NAMES = ("auto", "dot", "pure", "builtin")
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Engine:
    """`program` is empty for the built-in layout. `version` is what the program says of itself."""

    name: str
    program: str = ""
    version: str = ""


def find(name: str = "auto") -> Engine:
    """The engine of that name; `auto` takes the first that there is.

    Raises:
        LifetimeError: an engine was named that is not installed.
    """
    if name not in NAMES:
        raise LifetimeError(f"no layout engine {name!r}", f"engines: {', '.join(NAMES)}")
    if name in ("auto", "dot") and (program := _system_dot()):
        return Engine("dot", program, _version(program))
    if name in ("auto", "pure") and (program := _embedded()):
        return Engine("pure", program, _version(program))
    if name in ("auto", "builtin"):
        return Engine("builtin", version="1")
    help = "apt install graphviz" if name == "dot" else "pip install 'torch-lifetime[trace]'"
    raise LifetimeError(f"the layout engine {name!r} is not installed", help)


def run(engine: Engine, dot: str, form: str) -> bytes:
    """`dot` laid out as `form` (svg, png, pdf).

    Raises:
        LifetimeError: the engine failed, took too long, or cannot write that form.
    """
    try:
        done = subprocess.run([engine.program, f"-T{form}"], input=dot.encode(), capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise LifetimeError(f"{engine.program} gave no picture in {TIMEOUT_S:.0f} s", "try --engine builtin") from None
    except OSError as error:
        raise LifetimeError(f"cannot run {engine.program}: {error.strerror}", "try --engine builtin") from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise LifetimeError(
            f"{engine.name} cannot write {form}: {said[-1] if said else 'no output'}", "try .svg, or --engine dot"
        )
    return done.stdout


def _system_dot() -> str:
    named = os.environ.get("LIFETIME_DOT") or os.environ.get("GRAPHVIZ_DOT")
    return named or shutil.which("dot") or ""


def _embedded() -> str:
    """The program beside this interpreter first: a virtual environment need not be on PATH."""
    name = "graphviz-pure.exe" if os.name == "nt" else "graphviz-pure"
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name) or ""


def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "-V"], capture_output=True, timeout=TIMEOUT_S, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    words = (done.stderr + done.stdout).split()
    return next((word for word in words if word[:1].isdigit()), "unknown")

"""Layout engines: the system's `dot`, the embedded `graphviz-pure`, or our own layout, so that a picture never fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lifetime.errors import LifetimeError, UsageError

NAMES = ("auto", "dot", "pure", "builtin")
FORMS = {"dot": {"svg", "png", "pdf"}, "pure": {"svg", "png"}, "builtin": {"svg"}}
"""What each engine writes, in the order of preference."""
TIMEOUT_S = 60.0
OTHERWISE = "write .svg or .html: they take no engine"


@dataclass(frozen=True)
class Engine:
    """`program` is empty for the built-in layout. `version` is what the program says of itself; `note` says why it is not
    the engine that was asked for, and is empty where it is."""

    name: str
    program: str = ""
    version: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}".strip()


def find(name: str = "auto", form: str = "svg") -> Engine:
    """An engine that writes `form`: the named one, else the best that there is, with a note.

    Raises:
        UsageError: no engine has that name, or none on this machine writes that form.
    """
    if name not in NAMES:
        raise UsageError(f"no layout engine {name!r}", f"engines: {', '.join(NAMES)}")
    order = sorted(FORMS, key=lambda each: each != name)
    for each in order:
        program = _program(each)
        if form in FORMS[each] and program is not None:
            note = _note(name, each, form)
            return Engine(each, program, _version(program) if program else "1", note)
    if _named_dot() and form in FORMS["dot"]:
        raise UsageError(f"cannot run {_named_dot()}, which LIFETIME_DOT names", _help(form))
    able = " or ".join(each for each, forms in FORMS.items() if form in forms)
    raise UsageError(f"no layout engine here writes .{form}: that takes {able}", _help(form))


def run(engine: Engine, dot: str, form: str) -> bytes:
    """`dot` laid out as `form` (svg, png, pdf).

    Raises:
        LifetimeError: the engine failed, took too long, or cannot write that form.
    """
    try:
        done = subprocess.run([engine.program, f"-T{form}"], input=dot.encode(), capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise LifetimeError(f"{engine.program} gave no picture in {TIMEOUT_S:.0f} s", OTHERWISE) from None
    except OSError as error:
        raise LifetimeError(f"cannot run {engine.program}: {error.strerror}", OTHERWISE) from None
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise LifetimeError(f"{engine.name} cannot write {form}: {said[-1] if said else 'no output'}", OTHERWISE)
    return done.stdout


def _program(name: str) -> str | None:
    """The path of the engine's program, empty for the built-in one, None where it is not installed."""
    if name == "builtin":
        return ""
    return (_system_dot() if name == "dot" else _embedded()) or None


def _note(name: str, used: str, form: str) -> str:
    """Why it is not the engine that was asked for, by option or by environment; empty where it is."""
    broken = _named_dot() if used != "dot" and form in FORMS["dot"] and name in ("auto", "dot") else ""
    if broken:
        return f"drawn by {used}: cannot run {broken}"
    if name in ("auto", used):
        return ""
    return f"drawn by {used}: {name} " + (f"does not write .{form}" if form not in FORMS[name] else "is not installed")


def _help(form: str) -> str:
    install = "apt install graphviz" if form == "pdf" else "pip install 'torch-lifetime[trace]'"
    return f"{install}, or write .svg" + (", or print the .html page" if form == "pdf" else "")


def _system_dot() -> str:
    """What the environment names, or the one on PATH; empty where that is no program."""
    return shutil.which(_named_dot() or "dot") or ""


def _named_dot() -> str:
    return os.environ.get("LIFETIME_DOT") or os.environ.get("GRAPHVIZ_DOT") or ""


def _embedded() -> str:
    """The program beside this interpreter first: a virtual environment need not be on PATH."""
    name = "graphviz-pure.exe" if os.name == "nt" else "graphviz-pure"
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else shutil.which(name) or ""


@lru_cache(maxsize=8)
def _version(program: str) -> str:
    try:
        done = subprocess.run([program, "-V"], capture_output=True, timeout=TIMEOUT_S, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    words = (done.stderr + done.stdout).split()
    return next((word for word in words if word[:1].isdigit()), "unknown")

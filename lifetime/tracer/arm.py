"""One arm of a verification, in a process of its own: `python -m lifetime.tracer.arm ORDER SCRIPT [ARG...]`.

ORDER is a JSON file: what to fix, whether to apply it, where to write the run's record. Exit code: the program's own.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from pathlib import Path
from typing import Any

from lifetime.errors import LifetimeError
from lifetime.files import write_whole
from lifetime.heap.model import Environment, GcState
from lifetime.linter import registry
from lifetime.tracer import run
from lifetime.tracer.fixing import FixingLoader
from lifetime.tracer.imports import Hook
from lifetime.tracer.program import Program, module, script
from lifetime.verify.fixes import Fixes
from lifetime.verify.model import ArmRun


class Arm:
    """`order` has: out, apply, select, sites, wanted (a step and a parameter, or null)."""

    def __init__(self, order: dict[str, Any], program: Program) -> None:
        self.order = order
        self.program = program
        self.fixes = Fixes(tuple(order["select"]), tuple(order["sites"]), apply=bool(order["apply"]))
        self.recorder: Any = None
        self._pid = os.getpid()

    def run(self) -> int:
        registry.load()  # the hook must not judge the modules that it judges with
        hook = Hook(self._loader)
        hook.install()
        hook.after("torch", self._record)
        code = run.execute(self.program, self._rewrite, lambda error: None)
        if os.getpid() == self._pid:
            self._write()
        return code

    def _loader(self, name: str, path: str) -> Loader | None:
        return FixingLoader(name, path, self.fixes.fixed) if self.fixes.touches(path) else None

    def _rewrite(self, tree: ast.Module, source: bytes, path: str) -> ast.Module:
        if not self.fixes.touches(path):
            return tree
        return ast.parse(self.fixes.fixed(source, path), path)

    def _record(self) -> None:
        from lifetime.tracer.recorder import Recorder

        wanted = self.order.get("wanted")
        self.recorder = Recorder((int(wanted[0]), str(wanted[1])) if wanted else None)
        self.recorder.install()

    def _write(self) -> None:
        from lifetime.report.shapes import encode

        record = encode(self._result()) if self.recorder else None
        values = self.recorder.values if self.recorder else None
        write_whole(self.order["out"], json.dumps({"run": record, "values": values, "refused": self.fixes.refused}))

    def _result(self) -> ArmRun:
        import gc

        import torch

        from lifetime.tracer import device
        from lifetime.tracer.allocator import peak_bytes

        gc_state = GcState(gc.isenabled(), "as-is")
        command = self.program.command
        environment = Environment(platform.python_version(), torch.__version__, device.name(), gc_state, 0, 1, command)
        steps, parameters = tuple(self.recorder.steps), self.recorder.parameters()
        return ArmRun(environment, steps, parameters, peak_bytes(), tuple(self.fixes.found), tuple(self.fixes.stale))


def main(argv: Sequence[str]) -> int:
    order = json.loads(Path(argv[0]).read_text())
    try:
        program = module(argv[2], argv[3:]) if argv[1] == "-m" else script(argv[1], argv[2:])
        return Arm(order, program).run()
    except LifetimeError as error:
        write_whole(order["out"], json.dumps({"run": None, "values": None, "refused": [f"{error.message}"]}))
        return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

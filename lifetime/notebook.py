"""`%load_ext lifetime`: reports and survivors drawn where a notebook shows them, and `%%lifetime` to trace a cell.

The model knows nothing of it: formatters are registered with IPython, by type.
"""

from __future__ import annotations

import argparse
import base64
import shlex
import sys
from html import escape
from typing import Any

from lifetime.errors import UsageError
from lifetime.heap.model import Environment, GcState, Report, Survivor
from lifetime.report.render import render
from lifetime.report.text import report_text, survivor_text
from lifetime.report.view import View
from lifetime.report.words import amount, blamed
from lifetime.units import plural

Shell = Any
"""An `IPython.core.interactiveshell.InteractiveShell`; IPython is not ours to import."""

FRAME_HEIGHT = 640


is_loaded = False
"""`who()` need not print what the notebook draws."""


def load(shell: Shell) -> None:
    """Register the formatters and the magic with an IPython shell."""
    global is_loaded
    is_loaded = True
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(Report, report_html)
    formatters["text/html"].for_type(Survivor, survivor_html)
    formatters["text/plain"].for_type(Report, lambda report, printer, cycle: printer.text("\n".join(report_text(report))))
    formatters["text/plain"].for_type(Survivor, lambda found, printer, cycle: printer.text("\n".join(survivor_text(found))))
    shell.register_magic_function(lambda line, cell: trace_cell(shell, line, cell), "cell", "lifetime")


def unload(shell: Shell) -> None:
    """Take the formatters and the magic out again."""
    global is_loaded
    is_loaded = False
    formatters = shell.display_formatter.formatters
    for mime in ("text/html", "text/plain"):
        for kind in (Report, Survivor):
            formatters[mime].pop(kind, None)
    shell.magics_manager.magics["cell"].pop("lifetime", None)


def report_html(report: Report) -> str:
    """The whole page in a frame: its style and script stay in there, and the notebook's stay out."""
    page = escape(render(report, ".html").decode())
    return f'<iframe sandbox="allow-scripts" title="lifetime report" width="100%" height="{FRAME_HEIGHT}" srcdoc="{page}"></iframe>'


def survivor_html(survivor: Survivor) -> str:
    """The holder chain as a picture."""
    alone = Report(Environment("", None, "", GcState(True, "as-is"), 0, 1, ()), survivors=(survivor,))
    picture = render(View(alone, title=f"{blamed(survivor)}; {amount(survivor)}"), ".svg", "builtin")
    words = escape("\n".join(survivor_text(survivor)))
    return f'<img src="data:image/svg+xml;base64,{base64.b64encode(picture).decode()}" alt="{words}">'


def trace_cell(shell: Shell, line: str, cell: str) -> Any:
    """Run `cell` under the tracer; the value is its report. `%%lifetime [--step STEP] [--steps N] [--warmup N]`.

    The cell's own result is shown and dropped: `_` and `Out` would keep the very tensors that are watched.
    """
    from lifetime.tracer.api import trace

    options = _options(line)
    if options is None:
        return None
    try:
        tracing = trace(step=options.step, steps=options.steps, warmup=options.warmup, show=False)
    except UsageError as error:
        return _say(error)
    with tracing as session:
        shell.run_cell(cell, store_history=False)
    report = session.report
    if report is None or len(report.steps) < 2:
        seen = plural(len(report.steps) if report else 0, "step")
        return _say(
            UsageError(
                f"the cell ended after {seen}, too few to compare", "name the step: --step backward or --step MODULE:FUNCTION"
            )
        )
    return report


def _say(error: UsageError) -> None:
    print(f"lifetime: {error.message}" + (f"\n  help: {error.help}" if error.help else ""), file=sys.stderr)


def _options(line: str) -> argparse.Namespace | None:
    parser = argparse.ArgumentParser("%%lifetime", description="Trace this cell: who outlives a step, and who holds it.")
    parser.add_argument("--step", help="optimizer, backward or module:qualname")
    parser.add_argument("--steps", type=int, default=6, metavar="N")
    parser.add_argument("--warmup", type=int, default=1, metavar="N")
    try:
        return parser.parse_args(shlex.split(line))
    except SystemExit:
        return None  # argparse has said what is wrong; the kernel goes on

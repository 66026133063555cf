"""The bytes of each step as counter tracks that chrome://tracing and ui.perfetto.dev open.

Source: Trace Event Format, "Counter Events". A report knows steps, not seconds: one step is one millisecond.
"""

from __future__ import annotations

import json
from typing import Any

from lifetime import __version__
from lifetime.heap.model import Report, Step
from lifetime.report.view import View
from lifetime.report.words import command, summary

STEP_US = 1000
COUNTERS = {
    "live_bytes": "live bytes (lifetime)",
    "allocated_bytes": "allocated floor",
    "reserved_bytes": "reserved",
    "peak_bytes": "peak within the step",
}


def view_trace(view: View) -> str:
    """Counter events, one a step and figure; each rank is a process of its own."""
    events = [event for report in view.parts or (view.report,) for event in _rank(report)]
    other = {"made_by": f"lifetime {__version__}", "summary": summary(view.report), "clock": "one millisecond is one step"}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}, ensure_ascii=False) + "\n"


def _rank(report: Report) -> list[dict[str, Any]]:
    rank = report.environment.rank
    named = {"name": "process_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}: {command(report)}"}}
    return [named, *(event for step in report.steps for event in _events(step, rank))]


def _events(step: Step, rank: int) -> list[dict[str, Any]]:
    values = {name: getattr(step, field) for field, name in COUNTERS.items()}
    return [
        {"name": name, "ph": "C", "ts": step.index * STEP_US, "pid": rank, "tid": 0, "args": {"bytes": value}}
        for name, value in values.items()
        if value is not None
    ]

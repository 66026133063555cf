"""The report as JSON: written, read back and checked."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from lifetime.errors import ReportError
from lifetime.heap.model import SCHEMA, Report, Step, Survivor
from lifetime.report.shapes import decode, encode, schema
from lifetime.report.view import View

LARGEST_BYTES = 256 << 20
MOST_RANKS = 1_000_000


def to_json(report: Report) -> str:
    """The report in the shape of the contract, two spaces deep, with a final newline; the same report gives the same text."""
    value = encode(report)
    text = json.dumps({"schema": value.pop("schema"), **value}, indent=2, ensure_ascii=False) + "\n"
    # A file name may hold lone surrogates; their escapes are JSON, they themselves have no encoding.
    return text.encode("utf-8", "backslashreplace").decode()


def view_json(view: View) -> str:
    """The report of the view without what is gone; marks are made anew whenever it is drawn."""
    return to_json(replace(view.report, survivors=view.alive))


def from_json(text: str, source: str = "report") -> Report:
    """The report that `text` holds.

    Raises:
        ReportError: not JSON, another schema, or a value that no report of ours has.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{source} is not JSON: {error}", "was the run ended while it was being written?") from None
    if not isinstance(value, dict) or "schema" not in value:
        raise ReportError(f"{source} is not a lifetime report", "write one with: lifetime trace -o REPORT.json SCRIPT")
    if value["schema"] != SCHEMA:
        help = "trace again, or take the version of lifetime that wrote it"
        raise ReportError(f"{source} has schema {str(value['schema'])[:60]!r}, this version reads {SCHEMA!r}", help)
    report = decode(Report, value, f"{source}: report")
    _check_numbers(report, source)
    return report


def read(path: Path | str) -> Report:
    """The report in the file `path`.

    Raises:
        ReportError: the file cannot be read, is larger than any honest report, or does not hold one.
    """
    try:
        if Path(path).stat().st_size > LARGEST_BYTES:
            raise ReportError(f"{path} is larger than {LARGEST_BYTES >> 20} MiB: not a report of ours")
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return from_json(text, str(path))


def report_schema() -> dict[str, Any]:
    """The JSON Schema that ships as `report-1.schema.json`."""
    return schema(Report, "urn:lifetime:report:1")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_numbers(report: Report, source: str) -> None:
    """Sizes and counts are never negative, ranks are few, and indexes point into their chain."""
    if not 0 <= report.environment.rank <= report.environment.world_size <= MOST_RANKS:
        raise ReportError(f"{source}: rank {report.environment.rank} of {report.environment.world_size}")
    for step in report.steps:
        if min(step.index, step.live_bytes, *(n for n in _allocator(step) if n is not None), 0) < 0:
            raise ReportError(f"{source}: step {step.index} has a negative number")
    for site in report.sites:
        if not _is_file_name(site.path):
            raise ReportError(f"{source}: site {ascii(site.path[:100])} is no file name")
        if min(site.line, site.hits, site.captured_hits, site.bytes_per_step, site.outlived_call_bytes) < 0:
            raise ReportError(f"{source}: site {site.path[:100]}:{site.line} has a negative number")
    for survivor in report.survivors:
        _check_survivor(survivor, source)


def _is_file_name(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _allocator(step: Step) -> tuple[int | None, ...]:
    return step.allocated_bytes, step.reserved_bytes, step.peak_bytes


def _check_survivor(survivor: Survivor, source: str) -> None:
    numbers = (
        survivor.count,
        survivor.count_per_step,
        survivor.bytes,
        survivor.bytes_per_step,
        survivor.tensor.storage_bytes,
        survivor.tensor.address or 0,
        survivor.cut.frees_bytes,
        *survivor.tensor.shape,
    )
    if min(numbers) < 0:
        raise ReportError(f"{source}: survivor {survivor.fingerprint[:40]} has a negative size")
    last = len(survivor.chain.links) - 1
    for index in (survivor.chain.cycle, survivor.cut.link):
        if index is not None and not -1 <= index <= max(last, 0):
            raise ReportError(f"{source}: survivor {survivor.fingerprint[:40]} points at link {index} of {last + 1}")

"""One report, many forms: the file's ending says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lifetime.errors import UsageError
from lifetime.files import write_whole
from lifetime.heap.model import Report
from lifetime.report import engines
from lifetime.report.dot import report_dot
from lifetime.report.layout import report_svg
from lifetime.report.records import to_json
from lifetime.report.text import report_text


def render(report: Report, ending: str, engine: str = "auto") -> bytes:
    """The report in the form that `ending` names (`.svg`, `.dot`, ...).

    Raises:
        UsageError: no form has that ending.
        LifetimeError: the engine that was asked for is missing or failed.
    """
    if ending in PICTURES:
        return _picture(report, ending, engine)
    if ending in TEXTS:
        return TEXTS[ending](report).encode()
    raise UsageError(f"cannot draw {ending or 'a file without an ending'!s}", f"endings: {' '.join(sorted([*PICTURES, *TEXTS]))}")


def render_to(report: Report, path: Path | str, engine: str = "auto") -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, render(report, Path(path).suffix.lower(), engine))


def _picture(report: Report, ending: str, name: str) -> bytes:
    engine = engines.find(name)
    if engine.name == "builtin":
        if ending != ".svg":
            raise UsageError(f"the built-in layout draws .svg only, not {ending}", "pip install 'torch-lifetime[trace]'")
        return report_svg(report).encode()
    return engines.run(engine, report_dot(report), ending.removeprefix("."))


def _plain(report: Report) -> str:
    return "\n".join(report_text(report)) + "\n"


PICTURES = {".svg", ".png", ".pdf"}
TEXTS: dict[str, Callable[[Report], str]] = {".dot": report_dot, ".txt": _plain, ".json": to_json}

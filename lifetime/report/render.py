"""One report, many forms: the file's ending says which."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from lifetime import __version__
from lifetime.errors import LifetimeError, UsageError
from lifetime.files import write_whole
from lifetime.heap.model import Report
from lifetime.report import engines
from lifetime.report.view import View

PICTURES = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
TEXTS: dict[str, str] = {
    ".dot": "lifetime.report.dot:view_dot",
    ".html": "lifetime.report.html:view_html",
    ".json": "lifetime.report.records:view_json",
    ".md": "lifetime.report.markdown:view_markdown",
    ".mmd": "lifetime.report.mermaid:view_mermaid",
    ".sarif": "lifetime.report.leak_sarif:view_sarif",
    ".trace": "lifetime.report.perfetto:view_trace",
    ".txt": "lifetime.report.text:view_plain",
}
"""Ending to the function that writes it; imported when asked for."""


def render(report: Report | View, ending: str, engine: str = "auto") -> bytes:
    """The report in the form that `ending` names (`.svg`, `.dot`, ...).

    Raises:
        UsageError: no form has that ending, or no engine here writes it.
        LifetimeError: the engine failed.
    """
    return _render(report, ending, engine)[0]


def check(path: Path | str, engine: str = "auto") -> None:
    """Nothing where `render_to` knows the form of `path` and has an engine for it: said before there is any work.

    Raises:
        UsageError: no form has that ending, or no engine here writes it.
    """
    ending = _ending(path)
    if ending in PICTURES:
        engines.find(engine, PICTURES[ending])
    elif ending not in TEXTS:
        raise UsageError(f"cannot draw {ending or 'a file without an ending'}", f"endings: {endings()}")


def render_to(report: Report | View, path: Path | str, engine: str = "auto") -> str:
    """Write the report to `path`, whole or not at all. What comes back says why another engine drew it; empty if none did."""
    data, note = _render(report, _ending(path), engine)
    write_whole(path, data)
    return note


def _ending(path: Path | str) -> str:
    return ".trace" if str(path).lower().endswith(".trace.json") else Path(path).suffix.lower()


def endings() -> str:
    return " ".join(sorted([*PICTURES, *TEXTS]))


def _render(report: Report | View, ending: str, engine: str) -> tuple[bytes, str]:
    view = report if isinstance(report, View) else View(report)
    if ending in PICTURES:
        return _picture(view, PICTURES[ending], engine)
    if ending not in TEXTS:
        raise UsageError(f"cannot draw {ending or 'a file without an ending'!s}", f"endings: {endings()}")
    module, name = TEXTS[ending].split(":")
    write: Callable[[View], str] = getattr(import_module(module), name)
    # A name from the file system may hold lone surrogates, which no encoding takes.
    return write(view).encode("utf-8", "backslashreplace"), ""


SPARE = {"svg": "builtin", "png": "pure"}
"""Who draws where an engine fails."""


def _picture(view: View, form: str, name: str) -> tuple[bytes, str]:
    engine = engines.find(name, form)
    try:
        return _drawn(view, form, engine), engine.note
    except LifetimeError as error:
        spare = engines.find(SPARE[form], form) if form in SPARE else engine
        if spare.name in (engine.name, "dot"):
            raise
        return _drawn(view, form, spare), f"drawn by {spare.name}: {error.message}"


def _drawn(view: View, form: str, engine: engines.Engine) -> bytes:
    from lifetime.report.dot import picture_dot
    from lifetime.report.picture import picture
    from lifetime.report.png import stamped
    from lifetime.report.svg import engine_svg, sheet

    drawing, stamp = picture(view), _stamp(engine)
    if engine.name == "builtin":
        return sheet(drawing, stamp).encode()
    data = engines.run(engine, picture_dot(drawing, stamp), form)
    if form == "svg":
        return engine_svg(data.decode(), drawing, stamp).encode()
    return stamped(data, stamp) if form == "png" else data


def _stamp(engine: engines.Engine) -> str:
    return f"lifetime {__version__}, drawn by {engine.label}"

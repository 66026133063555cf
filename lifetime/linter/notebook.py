"""Notebooks: the code cells as one source text, and positions and edits mapped back to their cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from lifetime.errors import LifetimeError, SourceError
from lifetime.linter import json_places, loader
from lifetime.linter.edits import splice
from lifetime.linter.loader import Text
from lifetime.linter.model import Edit, Finding, Fix, Span

MAGIC = re.compile(r"(?m)^(?P<indent>[ \t]*)(?P<target>[A-Za-z_][\w.]*[ \t]*=[ \t]*(?=[%!]))?(?:[%!?].*|.*\?)$")
PYTHON_MAGICS = {"time", "timeit", "capture", "prun"}


class Cell(NamedTuple):
    """A code cell. `number` is 1-based among all cells; `first` is its first line in the whole source; `seen` is `text` with
    what is not Python blanked out."""

    number: int
    first: int
    text: str
    seen: str

    @property
    def last(self) -> int:
        return self.first + self.seen.count("\n")


@dataclass(frozen=True)
class Notebook:
    """A parsed notebook; `file` is its JSON text."""

    file: Text
    cells: tuple[Cell, ...]

    @property
    def source(self) -> str:
        return "".join(f"{cell.seen}\n" for cell in self.cells)

    @property
    def text(self) -> str:
        return self.file.source

    def splice(self, edits: Iterable[Edit]) -> Notebook:
        """Only the sources of the cells that change are written anew.

        Raises:
            SourceError: an edit crosses the border of a cell.
            LifetimeError: the notebook has a key twice, of which only one is read.
        """
        content, edits = self.file.source, list(edits)
        for cell in reversed(self.cells):
            own = [Edit(_moved(e.span, cell), e.text) for e in edits if cell.first <= e.span.start_line <= cell.last]
            text = splice(cell.text, own)
            if any(e.span.end_line > cell.last - cell.first + 1 for e in own):
                raise SourceError(f"an edit crosses the border of cell {cell.number}", "")
            if text != cell.text:
                start, end = _place_of(content, cell.number)
                new = json_places.in_style_of(content[start:end], text.splitlines(keepends=True) or [""])
                content = content[:start] + new + content[end:]
        return notebook(self.file._replace(source=content), "")

    def encode(self) -> bytes:
        return self.file.encode()

    def place(self, finding: Finding) -> Finding:
        cell = self._cell(finding.span.start_line)
        fix = finding.fix and _moved_fix(finding.fix, cell)
        first = max(finding.excerpt_line, cell.first)
        excerpt = finding.excerpt[first - finding.excerpt_line : cell.last - finding.excerpt_line + 1]
        line = first - cell.first + 1
        return replace(finding, span=_moved(finding.span, cell), fix=fix, cell=cell.number, excerpt=excerpt, excerpt_line=line)

    def where(self, line: int) -> tuple[str, int]:
        cell = self._cell(line)
        return f"cell {cell.number}, line {max(1, line - cell.first + 1)}: ", 0

    def _cell(self, line: int) -> Cell:
        return next((cell for cell in self.cells if line <= cell.last), self.cells[-1])


def notebook(file: Text, path: str) -> Notebook:
    """The notebook in a JSON text; one in another language has no cells.

    Raises:
        SourceError: it is not JSON or not a notebook.
    """
    try:
        content = json_places.DECODER.decode(file.source)
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        cells = content["cells"] if language == "python" else []
        sources = [(n, "".join(c["source"])) for n, c in enumerate(cells, 1) if c["cell_type"] == "code"]
    except json.JSONDecodeError as error:
        raise SourceError(f"is not a notebook: {error.msg}", path, error.lineno) from None
    except RecursionError:
        raise SourceError("is not a notebook: it nests too deep", path) from None
    except (KeyError, TypeError, AttributeError):
        raise SourceError("is not a notebook: it has no list of cells", path) from None
    found: list[Cell] = []
    for number, text in sources:
        found.append(Cell(number, found[-1].last + 1 if found else 1, text, _python(text)))
    return Notebook(file, tuple(found))


def _python(text: str) -> str:
    """The cell as Python of the same number of lines: magics and shell lines become `pass`."""
    magic = re.match(r"\s*%%(\w+)", text)
    if magic and magic[1] not in PYTHON_MAGICS:
        return "\n" * text.count("\n")
    try:
        loader.parse(text, "")
        return text
    except SourceError:
        return MAGIC.sub(lambda m: f"{m['indent']}{m['target']}None" if m["target"] else f"{m['indent']}pass", text)


def _moved(span: Span, cell: Cell) -> Span:
    by = cell.first - 1
    return Span(span.start_line - by, span.start_column, span.end_line - by, span.end_column)


def _moved_fix(fix: Fix, cell: Cell) -> Fix | None:
    """The fix in positions of the cell; None when it reaches beyond it."""
    if any(e.span.start_line < cell.first or e.span.end_line > cell.last for e in fix.edits):
        return None
    return replace(fix, edits=tuple(Edit(_moved(e.span, cell), e.text) for e in fix.edits))


def _place_of(text: str, number: int) -> tuple[int, int]:
    """Where the source of the cell `number` stands in the text of a notebook."""
    top = _only(text, len(text) - len(text.lstrip()), "cells")
    cell = list(json_places.elements(text, top[0]))[number - 1]
    return _only(text, cell[0], "source")


def _only(text: str, start: int, key: str) -> tuple[int, int]:
    found = list(json_places.members(text, start))
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LifetimeError(f"has the key {twice!r} twice: left alone", "save it once with Jupyter")
    return next((begin, end) for name, begin, end in found if name == key)

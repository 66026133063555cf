"""From bytes to text and back: encodings, line ends, and a plain sentence for whatever cannot be read."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from lifetime.errors import SourceError
from lifetime.linter.pieces import LARGE, pieces
from lifetime.linter.regular import opened

if TYPE_CHECKING:
    import ast

    from lifetime.linter.model import Edit, Finding

BOM = b"\xef\xbb\xbf"
COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BLANK = re.compile(rb"[ \t\f]*(?:#|$)")
ONLY_AST = 0x400
"""`ast.PyCF_ONLY_AST`: importing `ast` for it costs more than parsing a small file."""


class Document(Protocol):
    """What a file is to the rules: one source text, whatever it lies in."""

    @property
    def source(self) -> str:
        """What is parsed; all positions are positions in it."""

    @property
    def text(self) -> str:
        """What stands in the file."""

    def splice(self, edits: Iterable[Edit]) -> Document:
        """The document with the edits made; they stand in positions of `source`."""

    def encode(self) -> bytes:
        """The bytes of the file.

        Raises:
            UnicodeEncodeError: its encoding lacks a character.
        """

    def place(self, finding: Finding) -> Finding:
        """The finding as the user sees it: in a notebook, relative to its cell."""

    def where(self, line: int) -> tuple[str, int]:
        """A line as the user sees it; in a notebook that is a prefix for messages (`cell 3, line 2: `) and no line."""


class Text(NamedTuple):
    """A decoded Python file. Line ends are as in the file."""

    source: str
    encoding: str = "utf-8"
    bom: bool = False

    @property
    def text(self) -> str:
        return self.source

    def splice(self, edits: Iterable[Edit]) -> Text:
        from lifetime.linter.edits import splice

        return self._replace(source=splice(self.source, edits))

    def encode(self) -> bytes:
        return (BOM if self.bom else b"") + self.source.encode(self.encoding)

    def place(self, finding: Finding) -> Finding:
        return finding

    def where(self, line: int) -> tuple[str, int]:
        return "", line


def read(file: str) -> bytes:
    """The bytes of `file` as they were at one moment.

    Raises:
        SourceError: it cannot be read, or it changes while it is read (twice in a row).
    """
    try:
        for _ in range(2):
            with open(file, "rb", buffering=0, opener=opened) as handle:
                before = os.fstat(handle.fileno())
                data = handle.read()
                after = os.fstat(handle.fileno())
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                return data
    except OSError as error:
        raise SourceError(unreadable(error), file) from None
    raise SourceError("changed while it was read", file)


def unreadable(error: OSError) -> str:
    return f"cannot be read: {(error.strerror or str(error)).lower()}"


def decode(data: bytes, path: str) -> Text:
    """The text of a file by PEP 263: byte order mark, coding comment, else UTF-8.

    Raises:
        SourceError: NUL bytes, an unknown encoding, or bytes that the encoding does not have.
    """
    if b"\0" in data:
        raise SourceError("holds a NUL byte", path, _line_of(data, data.index(b"\0")))
    bom = data.startswith(BOM)
    body = data[len(BOM) :] if bom else data
    encoding = declared(body) or "utf-8"
    try:
        return Text(body.decode(encoding), encoding, bom)
    except (LookupError, TypeError):
        raise SourceError(f"names an encoding that does not exist: {encoding}", path, 1) from None
    except UnicodeError as error:
        at = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise SourceError(f"is not {encoding.upper()}: byte 0x{body[at]:02x}", path, _line_of(body, at)) from None


def declared(body: bytes) -> str | None:
    """The encoding that one of the first two lines names."""
    if b"coding" not in body[:1000]:
        return None
    first, _, rest = body.partition(b"\n")
    found = COOKIE.match(first)
    if not found and BLANK.match(first.rstrip(b"\r")):
        found = COOKIE.match(rest.partition(b"\n")[0])
    return found[1].decode("ascii", "replace") if found else None


def parse(source: str, path: str) -> ast.Module:
    """The syntax tree of `source` (without importing `ast`).

    Raises:
        SourceError: it does not parse.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (_in_pieces(source, path) if len(source) > LARGE and "\r" not in source else None) or _compiled(source, path)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SourceError(f"does not parse as Python {version}: {error.msg}", path, error.lineno or 0) from None
    except (RecursionError, MemoryError):
        raise SourceError("nests too deep for the parser", path) from None
    except ValueError as error:
        raise SourceError(f"does not parse: {error}", path) from None


def _compiled(source: str, path: str) -> ast.Module:
    tree: ast.Module = compile(source, path, "exec", ONLY_AST, dont_inherit=True)
    return tree


def _in_pieces(source: str, path: str) -> ast.Module | None:
    """The whole tree, of pieces; None where one does not parse by itself."""
    try:
        first, *others = (_compiled(piece, path) for piece in pieces(source))
    except SyntaxError:
        return None
    for other in others:
        first.body += other.body
    return first


def tree(document: Document, path: str) -> ast.Module:
    """The syntax tree of a document.

    Raises:
        SourceError: it does not parse; the line is the one that the user sees.
    """
    try:
        return parse(document.source, path)
    except SourceError as error:
        prefix, line = document.where(error.line)
        raise SourceError(prefix + error.message, path, line) from None


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1

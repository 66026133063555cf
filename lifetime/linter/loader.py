"""From bytes to a parsed module: encodings, line ends, and a plain sentence for whatever cannot be read."""

from __future__ import annotations

import os
import re
import sys
import warnings
from dataclasses import dataclass

from lifetime.errors import SourceError

BOM = b"\xef\xbb\xbf"
COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
BLANK = re.compile(rb"[ \t\f]*(?:#|$)")


@dataclass(frozen=True)
class Text:
    """A decoded file. Line ends are as in the file; `encode` gives back the very bytes it was read from."""

    source: str
    encoding: str = "utf-8"
    bom: bool = False

    def encode(self, source: str) -> bytes:
        return (BOM if self.bom else b"") + source.encode(self.encoding)


def read(file: str) -> bytes:
    """The bytes of `file` as they were at one moment.

    Raises:
        SourceError: it cannot be read, or it changes while it is read (twice in a row).
    """
    try:
        for _ in range(2):
            with open(file, "rb", buffering=0) as handle:
                before = os.fstat(handle.fileno())
                data = handle.read()
                after = os.fstat(handle.fileno())
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                return data
    except OSError as error:
        raise SourceError(f"cannot be read: {(error.strerror or str(error)).lower()}", file) from None
    raise SourceError("changed while it was read", file)


def decode(data: bytes, path: str) -> Text:
    """The text of a file by PEP 263: byte order mark, coding comment, else UTF-8.

    Raises:
        SourceError: NUL bytes, an unknown encoding, or bytes that the encoding does not have.
    """
    if b"\0" in data:
        raise SourceError("holds a NUL byte", path, _line_of(data, data.index(b"\0")))
    bom = data.startswith(BOM)
    encoding = declared(data) or "utf-8"
    body = data[len(BOM) :] if bom else data
    try:
        return Text(body.decode(encoding), encoding, bom)
    except LookupError:
        raise SourceError(f"names an encoding that does not exist: {encoding}", path, 1) from None
    except UnicodeDecodeError as error:
        message = f"is not {encoding}: byte 0x{body[error.start]:02x}"
        raise SourceError(message, path, _line_of(body, error.start)) from None


def declared(data: bytes) -> str | None:
    """The encoding that one of the first two lines names."""
    if b"coding" not in data[:1000]:
        return None
    first, _, rest = data.removeprefix(BOM).partition(b"\n")
    found = COOKIE.match(first)
    if not found and BLANK.match(first.rstrip(b"\r")):
        found = COOKIE.match(rest.partition(b"\n")[0])
    return found[1].decode("ascii", "replace") if found else None


def check_syntax(source: str, path: str) -> object:
    """The `ast.Module` of `source` (without importing `ast`).

    Raises:
        SourceError: it does not parse.
    """
    only_ast = 0x400  # ast.PyCF_ONLY_AST; importing ast for it costs more than parsing a small file
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(source, path, "exec", only_ast, dont_inherit=True)
    except SyntaxError as error:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SourceError(f"does not parse as Python {version}: {error.msg}", path, error.lineno or 0) from None
    except (RecursionError, MemoryError):
        raise SourceError("nests too deep for the parser", path) from None
    except ValueError as error:
        raise SourceError(f"does not parse: {error}", path) from None


def _line_of(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1

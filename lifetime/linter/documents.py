"""What kind of file is it: Python source or a notebook."""

from __future__ import annotations

from lifetime.linter.loader import Document, decode


def document(data: bytes, path: str) -> Document:
    """The document in the bytes of a file: a notebook by the ending of `path`, else Python source.

    Raises:
        SourceError: it cannot be decoded.
    """
    if path.endswith(".ipynb"):
        from lifetime.linter.notebook import notebook

        return notebook(decode(data, path), path)
    return decode(data, path)

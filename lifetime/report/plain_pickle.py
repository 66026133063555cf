"""Pickles without the power of pickles: a file that names anything to import or to call is refused before it does so.

Dicts, lists, tuples, strings and numbers are admitted. (A file made to waste time or memory still can: C reads it.)
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from lifetime.errors import ReportError
from lifetime.report.clean import one_line


def plain_pickle(data: bytes, source: str = "snapshot") -> Any:
    """The plain value in a pickle.

    Raises:
        ReportError: it asks for an import, a call or a persistent object, or is damaged.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except pickle.UnpicklingError as error:
        raise ReportError(f"{source} is not a pickle of plain containers: {one_line(str(error))}") from None
    except Exception as error:
        # A damaged pickle raises whatever its bytes happen to ask for: EOFError, ValueError, KeyError, MemoryError, ...
        raise ReportError(f"{source} is not a pickle: {type(error).__name__}") from None


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it names a persistent object")

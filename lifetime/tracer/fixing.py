"""Fixes applied in memory: the program imports the changed source, the file stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

Fixed = Callable[[bytes, str], bytes]
"""The bytes of a module and its path in, the bytes to compile out."""


class FixingLoader(SourceFileLoader):
    """Compiles what `fixed` makes of the source. No bytecode is read or written: it would be that of another source."""

    def __init__(self, name: str, path: str, fixed: Fixed) -> None:
        super().__init__(name, path)
        self._fixed = fixed

    def path_stats(self, path: Any) -> Any:
        raise OSError("no bytecode for a source that is changed in memory")

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        code: CodeType = super().source_to_code(self._fixed(bytes(data), str(path)), path)
        return code

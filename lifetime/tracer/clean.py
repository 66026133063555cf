"""Which files were seen to have no site: by time and size, as Python itself trusts its compiled files. One small file for all."""

from __future__ import annotations

import marshal
import os
from pathlib import Path

from lifetime.errors import LifetimeError
from lifetime.files import write_whole

MOST = 100_000


class Clean:
    """Files without sites, as judged by `tool`; what another version judged is forgotten."""

    def __init__(self, tool: bytes) -> None:
        self.tool = tool
        self._file = _cache_folder() / "clean"
        self._known = self._load()
        self._changed = False

    def __contains__(self, file: str) -> bool:
        known = self._known.get(file)
        return known is not None and known == _state(file)

    def add(self, file: str) -> None:
        state = _state(file)
        if state is not None:
            self._known[file] = state
            self._changed = True

    def save(self) -> None:
        """A folder that cannot be written costs the next run some time, no more."""
        if not self._changed or len(self._known) > MOST:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, marshal.dumps((self.tool, self._known)))
        except (OSError, LifetimeError):
            pass
        self._changed = False

    def _load(self) -> dict[str, tuple[int, int]]:
        try:
            tool, known = marshal.loads(self._file.read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            return {}
        return known if tool == self.tool and isinstance(known, dict) else {}


def _state(file: str) -> tuple[int, int] | None:
    try:
        state = os.stat(file)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


def _cache_folder() -> Path:
    named = os.environ.get("LIFETIME_CACHE_DIR")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "lifetime"

"""`[tool.lifetime]` in the nearest pyproject.toml, under what the command line says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lifetime.errors import UsageError
from lifetime.linter.places import shown
from lifetime.linter.regular import opened
from lifetime.linter.result import Problem
from lifetime.linter.settings import PathPatterns, Selection, Settings, path_patterns, selected
from lifetime.linter.severity import Severity

NOTHING = Selection()
FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit")


class Config(NamedTuple):
    """One `[tool.lifetime]` table. Paths and patterns are relative to `root`, the folder of its file."""

    root: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = {}
    force_exclude: bool = False
    unsafe_fixes: bool = False
    min_severity: str = "note"
    output_format: str = "text"
    baseline: str = ""
    cache_dir: str = ""

    @property
    def settings(self) -> Settings:
        return Settings(
            selections=(Selection(self.select, self.ignore, self.extend_select),),
            exclude=(path_patterns(self.root, self.exclude),) if self.exclude else (),
            per_file_ignores=tuple((path_patterns(self.root, [g]), codes) for g, codes in self.per_file_ignores.items()),
            force_exclude=self.force_exclude,
        )


class Resolver:
    """Settings by folder: the nearest pyproject.toml with a `[tool.lifetime]` table, then the command line.

    A file that is broken is a problem, said once; what is above it applies.
    """

    def __init__(self, selection: Selection = NOTHING, exclude: tuple[PathPatterns, ...] = (), force_exclude: bool = False) -> None:
        self.selection = selection
        self.exclude = exclude
        self.force_exclude = force_exclude
        self.problems: list[Problem] = []
        self._configs: dict[str, Config] = {}
        self._settings: dict[int, Settings] = {}

    def settings(self, folder: str) -> Settings:
        config = self.config(folder)
        if id(config) not in self._settings:
            own = config.settings
            self._settings[id(config)] = Settings(
                selections=(*own.selections, self.selection),
                exclude=(*own.exclude, *self.exclude),
                per_file_ignores=own.per_file_ignores,
                force_exclude=own.force_exclude or self.force_exclude,
            )
        return self._settings[id(config)]

    def config(self, folder: str) -> Config:
        """The table that applies in `folder`; the defaults where there is none."""
        if folder not in self._configs:
            parent = os.path.dirname(folder)
            above = self.config(parent) if parent != folder else Config()
            self._configs[folder] = self._own(folder) or above
        return self._configs[folder]

    def _own(self, folder: str) -> Config | None:
        file = os.path.join(folder, "pyproject.toml")
        try:
            with open(file, "rb", opener=opened) as handle:
                table = _table(handle.read().decode())
            return None if table is None else parse(table, folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            message = f"cannot be read: {(error.strerror or str(error)).lower()}"
        except RecursionError:
            message = "nests too deep"
        except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
            message = str(error)
        self.problems.append(Problem(shown(file), message))
        return None


def _table(text: str) -> object:
    """The `[tool.lifetime]` table; None where there is none. Raises ValueError when the text is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not valid TOML: {error}") from None
    return tool.get("lifetime") if isinstance(tool, dict) else None


def parse(table: object, root: str) -> Config:
    """The configuration in a `[tool.lifetime]` table.

    Raises:
        ValueError: an unknown key, or a value of the wrong kind.
    """
    if not isinstance(table, dict):
        raise ValueError("[tool.lifetime] is not a table")
    for key in table:
        if key not in KEYS:
            raise ValueError(f"[tool.lifetime] has an unknown key: {key!r} (known: {', '.join(KEYS)})")
    values: dict[str, Any] = {key.replace("-", "_"): KEYS[key](key, value) for key, value in table.items()}
    config = Config(root=root, **values)
    for layer in (
        Selection(config.select, config.ignore, config.extend_select),
        *map(_ignoring, config.per_file_ignores.values()),
    ):
        try:
            selected((layer,))
        except UsageError as error:
            raise ValueError(f"[tool.lifetime]: {error.message}") from None
    return config


def _ignoring(codes: tuple[str, ...]) -> Selection:
    return Selection(ignore=codes)


def _strings(key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError(f"[tool.lifetime] {key} is not a list of strings")


def _table_of_strings(key: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(f"[tool.lifetime] {key} is not a table of pattern = [codes]")
    return {glob: _strings(f"{key}.{glob!r}", codes) for glob, codes in value.items()}


def _bool(key: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"[tool.lifetime] {key} is not true or false")


def _string(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"[tool.lifetime] {key} is not a string")


def _one_of(*allowed: str) -> Callable[[str, Any], str]:
    def check(key: str, value: Any) -> str:
        if value in allowed:
            return str(value)
        raise ValueError(f"[tool.lifetime] {key} is not one of {', '.join(allowed)}")

    return check


KEYS: dict[str, Callable[[str, Any], object]] = {
    "select": _strings,
    "ignore": _strings,
    "extend-select": _strings,
    "exclude": _strings,
    "per-file-ignores": _table_of_strings,
    "force-exclude": _bool,
    "unsafe-fixes": _bool,
    "min-severity": _one_of(*(severity.value for severity in Severity)),
    "output-format": _one_of(*FORMATS),
    "baseline": _string,
    "cache-dir": _string,
}

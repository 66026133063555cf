"""The traced program: found, read and set up as `python SCRIPT` and `python -m MODULE` do it."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import zipimport
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from lifetime.errors import UsageError

Rewrite = Callable[[ast.Module, bytes, str], ast.Module]
"""Changes a module's tree before it is compiled: tree, source and path in, tree out."""


@dataclass(frozen=True)
class Program:
    """A script or a module and its arguments. `path` is what `sys.argv[0]` says; `folder` is `sys.path[0]`.

    `spec` is None for a script that is one file.
    """

    path: str
    arguments: tuple[str, ...]
    folder: str
    spec: ModuleSpec | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """The command line without our options, as `sys.orig_argv` would have it after the interpreter."""
        named = self.spec is not None and self.spec.name != "__main__"
        start = ("-m", self.spec.name.removesuffix(".__main__")) if named and self.spec else (self.path,)
        return (*start, *self.arguments)

    def main_module(self) -> ModuleType:
        """A fresh `__main__`, in place: `sys.modules`, `sys.argv` and `sys.path` are as the program expects them."""
        main = ModuleType("__main__")
        loader = self.spec.loader if self.spec else SourceFileLoader("__main__", os.path.abspath(self.path))
        facts: dict[str, Any] = {
            "__builtins__": sys.modules["builtins"],
            "__cached__": self.spec.cached if self.spec else None,
            "__file__": self.spec.origin if self.spec else os.path.abspath(self.path),
            "__loader__": loader,
            "__package__": self.spec.parent if self.spec else None,
            "__spec__": self.spec,
        }
        if sys.version_info < (3, 14):
            facts["__annotations__"] = {}
        vars(main).update(facts)
        sys.modules["__main__"] = main
        sys.argv[:] = [self.path, *self.arguments]
        sys.orig_argv[:] = [sys.executable, *self.command]
        return main

    def code(self, rewrite: Rewrite) -> CodeType:
        """The program's code, its tree changed by `rewrite` on the way.

        Raises:
            SyntaxError, OSError: as Python raises them.
        """
        loader = self.spec.loader if self.spec else None
        if loader is not None and not isinstance(loader, (SourceFileLoader, zipimport.zipimporter)):
            code: CodeType | None = loader.get_code(self.spec.name)  # type: ignore[attr-defined, union-attr]
            if code is None:
                raise UsageError(f"no code object for {self.path}")
            return code
        name = (self.spec.origin if self.spec else None) or os.path.abspath(self.path)
        source = loader.get_data(name) if loader is not None else Path(name).read_bytes()
        tree: Any = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        return compile(rewrite(tree, source, name), name, "exec", dont_inherit=True)


def script(path: str, arguments: Sequence[str]) -> Program:
    """The program `python PATH ARGUMENTS` runs; PATH may be a folder or a zip file that has a `__main__.py`.

    Raises:
        UsageError: there is nothing to run.
    """
    if path == "-":
        raise UsageError("a script from standard input cannot be traced", "save it to a file first")
    if not os.path.exists(path):
        raise UsageError(f"no script {path!r}", "the script comes after the options: lifetime trace [OPTIONS] SCRIPT [ARG...]")
    home = os.path.abspath(path)
    spec = PathFinder.find_spec("__main__", [home])
    if spec is not None:
        _first_on_path(home)
        return Program(path, tuple(arguments), home, spec)
    if os.path.isdir(path):
        raise UsageError(f"{path!r} is a folder without a __main__.py")
    folder = os.path.dirname(os.path.realpath(path))
    if not getattr(sys.flags, "safe_path", False):
        _first_on_path(folder)
    return Program(path, tuple(arguments), folder)


def module(name: str, arguments: Sequence[str]) -> Program:
    """The program `python -m NAME ARGUMENTS` runs. Parent packages are imported, as Python does.

    Raises:
        UsageError: there is no such module, or it cannot be run.
    """
    folder = os.getcwd()
    if not getattr(sys.flags, "safe_path", False):
        _first_on_path(folder)
    sys.argv[:] = ["-m", *arguments]
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
        if spec is None:
            raise UsageError(f"{name!r} is a package without a __main__ and cannot be run")
    if spec is None or spec.loader is None:
        raise UsageError(f"no module named {name!r}")
    return Program(spec.origin or name, tuple(arguments), folder, spec)


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise
    except ValueError:
        return None


def _first_on_path(folder: str) -> None:
    """Python put there what belongs to the way we were started: a script's folder, or the current one for `-m`."""
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    else:
        sys.path[0] = folder

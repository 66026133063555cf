"""The import hook: sees modules before they run (to rewrite) and just after (to act when torch or a step's module is there)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any

from lifetime.tracer.guard import undisturbed

Rewriter = Callable[[str, str], Loader | None]
"""The loader for the module NAME at PATH, or None where the normal one is right."""


class Hook(MetaPathFinder):
    """Asks the other finders and passes on what they find; only the loader of a module of interest changes.

    `is_clean` says of a file, at little cost, that the rewriter has nothing to say about it.
    """

    def __init__(self, rewriter: Rewriter | None = None, is_clean: Callable[[str], bool] = lambda file: False) -> None:
        self.rewriter = rewriter
        self.is_clean = is_clean
        self._after: dict[str, list[Callable[[], None]]] = {}
        self._busy = threading.local()

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def after(self, name: str, action: Callable[[], None]) -> None:
        """Run `action` once the module `name` has been imported; at once if it has been already."""
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            action()
        else:
            self._after.setdefault(name, []).append(action)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = self._others(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        if type(spec.loader) is SourceFileLoader and spec.origin:
            spec.loader = self._rewritten(name, spec.origin) or spec.loader
        if name in self._after:  # a spec may be asked for and never loaded: the actions wait for an import
            spec.loader = _Then(spec, spec.loader, lambda: self._act(name))
        return spec

    def _act(self, name: str) -> None:
        for action in self._after.pop(name, ()):
            action()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What this thread imports inside is our own business."""
        self._busy.now = True
        try:
            yield
        finally:
            self._busy.now = False

    def _rewritten(self, name: str, origin: str) -> Loader | None:
        if self.rewriter is None or self.is_clean(origin) or getattr(self._busy, "now", False) or name.startswith("lifetime."):
            return None
        with self.aside(), undisturbed():
            return self.rewriter(name, origin)

    def _others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None


class _Then(Loader):
    """Loads as `loader` does, acts, and is gone: the module keeps the loader and the spec that it would have had."""

    def __init__(self, spec: ModuleSpec, loader: Any, then: Callable[[], None]) -> None:
        self.spec = spec
        self.loader = loader
        self.then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        spec.loader = self.loader
        module: ModuleType | None = self.loader.create_module(spec)
        spec.loader = self
        return module

    def exec_module(self, module: ModuleType) -> None:
        self.spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.then()

"""Where a search backwards ends: modules, classes that a module names, running frames, and what the interpreter itself keeps."""

from __future__ import annotations

import contextvars
import sys
import types
from typing import Any, cast

from lifetime.heap import autograd, fence, hidden, peek
from lifetime.heap.frames import Running
from lifetime.heap.graph import ObjectId, RootRef
from lifetime.heap.model import RootKind
from lifetime.heap.threads import Handled

AT_FORK = "os.register_at_fork"
OPEN_HOOKS = tuple(f"torch.autograd.graph.saved_tensors_hooks (still open): {name}_hook" for name in ("pack", "unpack"))


class Roots:
    """Recognises roots among holders. `owner_of` maps a module's dictionary to the module: the two are told as one."""

    def __init__(self, frames: tuple[Running, ...], handled: tuple[Handled, ...] = ()) -> None:
        self.frames = frames
        self._handled = handled
        self._modules: dict[int, str] = {}
        self._dicts: dict[int, types.ModuleType] = {}
        for name, module in sorted(peek.modules(), key=lambda entry: (entry[0] != "__main__", entry[0])):
            if id(module) not in self._modules:
                self._modules[id(module)] = name
                self._dicts[id(peek.module_dict(module))] = module

    def owner_of(self, holder: object) -> types.ModuleType | None:
        """The module whose namespace `holder` is."""
        return self._dicts.get(id(holder))

    def of(self, holder: object) -> RootRef | None:
        """The root that `holder` is, or None: then the search goes on above it."""
        key = ObjectId(id(holder))
        if key in self._modules:
            module = cast(types.ModuleType, holder)
            name = self._modules[key]
            return RootRef(key, RootKind.GLOBAL, name, _file(module), _expression(name))
        if peek.is_class(holder):
            return self._class(cast(type, holder), key)
        return None

    def of_dead_end(self, thing: object) -> RootRef | None:
        """The root that an object is because nobody is seen to refer to it: a thread does."""
        key = ObjectId(id(thing))
        if peek.is_a(thing, contextvars.Context):
            return RootRef(key, RootKind.INTERPRETER, "contextvars.copy_context()", None, "contextvars.copy_context()")
        return None

    def handled_roots(self) -> list[RootRef]:
        """The exceptions that threads handle, one root each, and what the interpreter keeps for the program: signal handlers."""
        kept = [RootRef(ObjectId(id(one)), RootKind.INTERPRETER, name, None, name) for name, one in fence.aside()]
        kept += [RootRef(ObjectId(id(one)), RootKind.INTERPRETER, AT_FORK) for one in hidden.handlers()]
        for number, one in enumerate(autograd.open_hooks()):
            kept.append(RootRef(ObjectId(id(one)), RootKind.INTERPRETER, OPEN_HOOKS[number % len(OPEN_HOOKS)]))
        return kept + [
            RootRef(ObjectId(address), RootKind.INTERPRETER, "sys.exception()")
            if thread is None
            else RootRef(ObjectId(address), RootKind.THREAD, f"{thread}: sys.exception()")
            for thread, address in self._handled
        ]

    def _class(self, kind: type, key: ObjectId) -> RootRef | None:
        module, name = peek.module_name(kind), peek.qualname(kind)
        found: Any = sys.modules.get(module) if module else None
        for part in name.split("."):
            space = peek.module_dict(found) if peek.is_a(found, types.ModuleType) else None
            found = (space or (peek.class_dict(found) if peek.is_class(found) else {})).get(part)
        if found is not kind:
            return None
        full = name if module == "builtins" else f"{module}.{name}"
        return RootRef(key, RootKind.CLASS, full, None, full)

    def frame_roots(self) -> list[RootRef]:
        """One a running frame; the node is the frame."""
        return [
            RootRef(
                ObjectId(frame.frame),
                RootKind.LOCAL if frame.thread is None else RootKind.THREAD,
                frame.function if frame.thread is None else f"{frame.thread}: {frame.function}",
                frame.where,
                depth=depth,
            )
            for depth, frame in enumerate(self.frames)
        ]


def _file(module: types.ModuleType) -> str | None:
    found = peek.module_dict(module).get("__file__")
    return found if type(found) is str else None


def _expression(name: str) -> str:
    return name if name == "__main__" or all(part.isidentifier() for part in name.split(".")) else f"sys.modules[{name!r}]"

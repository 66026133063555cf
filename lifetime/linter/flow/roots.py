"""Which functions of a file are a backward, and which of those can see a `.grad` at all."""

from __future__ import annotations

from dataclasses import dataclass

from lifetime.linter.flow.classes import is_autograd_function
from lifetime.linter.flow.names import is_benchmark, is_test_function
from lifetime.linter.flow.survey import Traits, survey
from lifetime.linter.flow.values import ClassRef
from lifetime.linter.gate import is_test
from lifetime.linter.module import Function, Module


@dataclass(frozen=True, eq=False)
class Root:
    function: Function
    owner: ClassRef | None
    in_function: bool


def makers(module: Module) -> set[str]:
    """Names of functions in which leaves are made, by themselves or by what they call."""
    found = module.memo.get("makers")
    if not isinstance(found, set):
        traits = survey(module)
        found = module.memo["makers"] = _reaching({f.name for f, t in traits.items() if t.makes}, traits)
    return found


def roots(module: Module) -> list[Root]:
    """Every function to walk: a backward, by its class, by what it hands on, or because it calls such a helper with arguments.

    Tests are none: they compare gradients on purpose and end at once.
    """
    if is_test(module.path, module.source.encode(errors="replace")):
        return []
    traits = survey(module)
    handing = {f.name for f, t in traits.items() if t.hands}
    seeing = _reaching({f.name for f, t in traits.items() if t.grads}, traits)
    found = []
    for function, own in traits.items():
        owner = ClassRef(own.owner, module) if own.owner is not None else None
        custom = owner is not None and function.name == "backward" and is_autograd_function(owner)
        through = own.calls & handing and (own.grads or own.makes or own.backward)
        if not (custom or ((own.hands or through) and not is_benchmark(module))):
            continue
        if (own.grads or own.calls & seeing) and not is_test_function(module, function):
            found.append(Root(function, owner, custom))
    return found


def _reaching(names: set[str], traits: dict[Function, Traits]) -> set[str]:
    """Names of functions that call one of `names`, however deep."""
    callers: dict[str, set[str]] = {}
    for function, own in traits.items():
        for called in own.calls:
            callers.setdefault(called, set()).add(function.name)
    reached, waiting = set(names), list(names)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in reached:
                reached.add(caller)
                waiting.append(caller)
    return reached

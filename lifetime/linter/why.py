"""Why the flow rules speak about a line, or why they are silent: in sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lifetime.linter.capture import capture
from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak, Walk, flow
from lifetime.linter.flow.names import is_test_function, last_name
from lifetime.linter.flow.readers import readers
from lifetime.linter.flow.survey import MODULES
from lifetime.linter.flow.values import Keys, Kind
from lifetime.linter.gate import is_test
from lifetime.linter.leak_fix import leak_fix
from lifetime.linter.module import Function, Module
from lifetime.linter.release_plan import leaves_text


def explain_line(module: Module, line: int) -> list[str]:
    """What the walk over the file knows about `line`: its `.grad` reads and releases; empty where it has none."""
    said = [sentence for leak in flow(module).leaks if leak.node.lineno == line for sentence in _finding(module, leak)]
    if not said:
        said = [sentence for node in _reads(module, line) for sentence in _silence(module, node)]
    said += [
        sentence
        for release, walk in flow(module).releases
        if getattr(release.node, "lineno", 0) == line
        for sentence in _release(module, release.guarded, release.ran, release.keys, walk)
    ]
    return list(dict.fromkeys(said))


def _reads(module: Module, line: int) -> list[ast.expr]:
    """`.grad` reads that begin or end on `line`."""
    found = []
    for node in module.nodes:
        is_read = isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load)
        is_get = (
            isinstance(node, ast.Call) and last_name(node.func) == "getattr" and '"grad"' in ast.unparse(node).replace("'", '"')
        )
        if (is_read or is_get) and isinstance(node, ast.expr) and line in {node.lineno, node.end_lineno}:
            found.append(node)
    return found


def _finding(module: Module, leak: Leak) -> Iterator[str]:
    made = sorted({getattr(k.origin.node, "lineno", 0) for k in leak.keys} - {0})
    where = f", made in line {', '.join(map(str, made))}" if made else ""
    yield f"the leaves are `{leaves_text(module, leak.leaves)}`{where}; this is the first read of their .grad"
    yield f"{_name(module, leak.walk.root.function)} can return without setting it to None"
    how = escape(leak)
    kept = {
        CALLEE: "nothing in the source keeps the leaves: only the function that is run again could (`lifetime trace` shows it)",
        CALLER: "the caller holds the leaves",
    }
    yield kept.get(how, f"the leaves stay reachable through `{how}`")
    others = readers(module, leak)
    may = [r for r in others if r.may_alias]
    yield f"{len(others)} other .grad reads in the function, the file and the package, {len(may)} of which may see these leaves"
    yield from (f"{r.path}:{r.line} may see them: {r.why}" for r in may)
    if knows := capture(module):
        yield f"the file knows CUDA-graph capture (line {knows.line}: {knows.what}): the release needs its guard"
    fix = leak_fix(module, leak, others)
    if fix is None:
        yield "no fix: there is no place behind this read where a release is known to be right"
    else:
        yield f"the fix is {fix.safety.value}" + (f": {fix.reason}" if fix.reason else "")


def _silence(module: Module, node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and last_name(node.value) in MODULES:
        yield f"`{ast.unparse(node)}` is a function, not the gradient of a tensor"
        return
    function = module.enclosing_function(node)
    if is_test(module.path, module.source.encode(errors="replace")) or (
        function is not None and is_test_function(module, function)
    ):
        yield "tests are out of scope: they compare gradients on purpose and end at once"
        return
    walks = [walk for walk in flow(module).walks if node in walk.machine.events.reads]
    if not walks:
        yield from _unwalked(module, function)
    for walk in walks:
        yield _verdict(module, node, walk)


def _unwalked(module: Module, function: Function | None) -> Iterator[str]:
    given_up = [w for w in flow(module).walks if w.root.function is function and not w.understood]
    if function is None:
        yield "a read at module level: no backward"
    elif given_up:
        yield f"{_name(module, function)} is too large to follow: in doubt silent"
    else:
        yield (
            f"{_name(module, function)} is no backward: it is no Function.backward, hands no output gradients to one, "
            "and nothing that does calls it"
        )


def _verdict(module: Module, node: ast.expr, walk: Walk) -> str:
    """Why this walk does not report this read."""
    events, name = walk.machine.events, _name(module, walk.root.function)
    keys = events.reads[node]
    leaves = frozenset(k for k in keys if walk.machine.is_leaf(k))
    if not leaves:
        return f"{name}: {_no_leaf(keys)}"
    if node in events.late:
        return f"{name}: the leaves were released before (LT005)"
    if node not in events.harvests:
        return f"{name}: a bare test for None, or a read before any backward has run, is no harvest"
    first = sorted(k.node.lineno for k in flow(module).every if any(a.meets(b) for a in k.keys for b in leaves))
    if first:
        return f"{name}: the same leaves are reported at their first read, line {first[0]}"
    released = sorted(
        {getattr(r.node, "lineno", 0) for r in events.releases.values() if any(a.meets(b) for a in r.keys for b in leaves)}
    )
    if released:
        return f"{name}: released in line {', '.join(map(str, released))} on every way to a return"
    return f"{name}: every return behind it is exempt (nothing to release there, or a capture is under way)"


def _no_leaf(keys: Keys) -> str:
    kinds = {k.origin.kind for k in keys}
    if Kind.WEIGHT in kinds:
        return "a gradient of parameters, which belongs to the optimizer"
    if Kind.ARGUMENT in kinds:
        return "the tensor is an argument, and its gradient is not handed back"
    if Kind.FRESH in kinds:
        return "the tensor is made here, not detached from anything"
    return "not known to be a detached leaf: in doubt silent"


def _release(module: Module, guarded: bool, ran: bool, keys: Keys, walk: Walk) -> Iterator[str]:
    name = _name(module, walk.root.function)
    if not ran:
        yield f"{name}: .grad is set to None before any backward has filled it: that releases nothing"
        return
    made = sorted({getattr(k.origin.node, "lineno", 0) for k in keys} - {0})
    yield f"{name}: releases the leaves" + (f" made in line {', '.join(map(str, made))}" if made else "")
    if knows := capture(module):
        state = "never runs" if guarded else "can run"
        yield f"it {state} during CUDA-graph capture, which the file knows (line {knows.line}: {knows.what})"


def _name(module: Module, function: Function) -> str:
    return module.qualified(function) or function.name

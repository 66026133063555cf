"""The fix of an unreleased harvest: where the release goes, what guards it, and whether it is safe."""

from __future__ import annotations

import ast

from lifetime.linter.blocks import statement_of
from lifetime.linter.capture import capture
from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak, flow
from lifetime.linter.flow.readers import readers
from lifetime.linter.flow.reads import Reader
from lifetime.linter.flow.values import Keys
from lifetime.linter.model import Fix, Safety
from lifetime.linter.module import Module
from lifetime.linter.release_doubt import CERTAIN, handed_on, looks_later, runs_again
from lifetime.linter.release_fix import guard_of, release_edits
from lifetime.linter.release_order import sources, stored
from lifetime.linter.release_site import Site, between, exclusive, harvest_of, site


def leak_fix(module: Module, leak: Leak, found: list[Reader] | None = None) -> Fix | None:
    """Release all leaves that the statement of `leak` harvests; None where no safe place for it is known."""
    guard, imports = "", ""
    if (knows := capture(module)) is not None and leak.node not in leak.walk.machine.events.guarded:
        asked = guard_of(knows, module, leak.node)
        if asked is None:
            return None
        guard, imports = asked
    reads, events = _together(module, leak), leak.walk.machine.events
    bases = [base if isinstance(base := events.harvests.get(r, (r, None))[0], ast.expr) else r for r in reads]
    statement = harvest_of(module, list(zip(reads, bases, strict=True)))
    home = module.enclosing_function(leak.node)
    again = runs_again(module, leak, home) if home else CERTAIN
    if statement is None or home is None or again.startswith(CERTAIN):
        return None
    leaves = {name for read, base in zip(reads, bases, strict=True) for name in sources(module, base, home)}
    place, handed = _place(module, leak, statement, leaves)
    edits = release_edits(module, place, reads, guard, imports, _comment(escape(leak))) if place else None
    if edits is None or place is None:
        return None
    settled = range(place.function.lineno, (place.anchor.end_lineno or place.anchor.lineno) + 1)
    others = readers(module, leak) if found is None else found
    reason = unsafe_because(module, leak, [r for r in others if not (r.path == module.path and r.line in settled)])
    reason = reason or again or handed or looks_later(module, leak, place, leaves)
    return Fix("release the leaves after the harvest", Safety.UNSAFE if reason else Safety.SAFE, edits, reason)


def _place(module: Module, leak: Leak, statement: ast.stmt, leaves: set[str]) -> tuple[Site | None, str]:
    """Where the release goes, and a reason to doubt it: a call behind it that is handed the leaves."""
    later = _later(module, leak, statement)
    home = module.enclosing_function(leak.node)
    handed = handed_on(module, statement, home, leaves) if home else []
    handed = [] if isinstance(statement, ast.Return) else [n for n in handed if not exclusive(module, statement, n)]
    beyond = site(module, statement, leaves, [*later, *handed])
    if beyond is not None and not stored(between(module, beyond)[1:]) & leaves:
        return beyond, ""
    reason = f"line {handed[0].lineno} hands the leaves on: what is called may read their .grad" if handed else ""
    place = site(module, statement, leaves, later)
    return (None, "") if place is None or stored(between(module, place)[1:]) & leaves else (place, reason)


def _later(module: Module, leak: Leak, statement: ast.stmt) -> list[ast.expr]:
    """Reads of the same leaves in the function of the harvest, behind it: the release must come after them."""
    home = module.enclosing_function(leak.node)
    if isinstance(statement, ast.Return):
        return []
    keys = leak.keys.union(*(leak.walk.leaked.get(node, frozenset()) for node in _together(module, leak)))
    found = []
    for node, seen in leak.walk.machine.events.reads.items():
        if not isinstance(node, ast.expr) or module.enclosing_function(node) is not home:
            continue
        behind = node.lineno > (statement.end_lineno or statement.lineno) and not exclusive(module, statement, node)
        if behind and any(a.meets(b) for a in seen for b in keys):
            found.append(node)
    return found


def unsafe_because(module: Module, leak: Leak, found: list[Reader]) -> str:
    """Why somebody may still want the `.grad`; empty where nobody can."""
    lines = [getattr(n, "lineno", 0) for n, keys in _shared(leak) if any(k.meets(mine) for k in keys for mine in leak.keys)]
    if lines:
        return f"the leaves are published in line {min(lines)} (LT006): whoever holds them may read .grad"
    if escape(leak) == CALLER:
        return "the tensor is the caller's, who may read its .grad"
    other = next((r for r in found if r.may_alias), None)
    return f"{other.path}:{other.line} may read .grad of the same leaves" if other else ""


def _shared(leak: Leak) -> list[tuple[ast.AST, Keys]]:
    stored = [(node, keys) for node, (_, keys) in leak.walk.published.items()]
    return [*stored, *leak.walk.returned.items()]


def _together(module: Module, leak: Leak) -> list[ast.expr]:
    """All unreleased reads of the statement in which `leak` reads, in order."""
    if "harvested" not in module.memo:
        grouped: dict[ast.stmt | None, list[Leak]] = {}
        for other in flow(module).every:
            grouped.setdefault(statement_of(module, other.node), []).append(other)
        module.memo["harvested"] = grouped
    known = module.memo["harvested"]
    assert isinstance(known, dict)
    mine: list[Leak] = known[statement_of(module, leak.node)]
    return sorted((k.node for k in mine), key=lambda n: (n.lineno, n.col_offset))


def _comment(how: str) -> str:
    """A comment only where the source itself shows the holder."""
    if how in {CALLEE, CALLER}:
        return ""
    place = "ctx.saved_tensors" if how == "saved_tensors" else how
    return f"# {place} can keep these leaves, and their .grad, alive."

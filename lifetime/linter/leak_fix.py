"""The fix of an unreleased harvest: where the release goes, what guards it, and whether it is safe."""

from __future__ import annotations

import ast

from lifetime.linter.capture import capture
from lifetime.linter.flow.escape import CALLEE, CALLER, escape
from lifetime.linter.flow.flow import Leak, flow
from lifetime.linter.flow.readers import Reader, readers
from lifetime.linter.model import Fix, Safety
from lifetime.linter.module import Module
from lifetime.linter.release_fix import guard_of, release_edits


def leak_fix(module: Module, leak: Leak, found: list[Reader] | None = None) -> Fix | None:
    """Release all leaves that the statement of `leak` harvests; None where no safe place for it is known."""
    guard, imports = "", ""
    if (knows := capture(module)) is not None and leak.node not in leak.walk.machine.events.guarded:
        asked = guard_of(knows, module, leak.node)
        if asked is None:
            return None
        guard, imports = asked
    edits = release_edits(module, _together(module, leak), guard, imports, _comment(escape(leak)))
    if edits is None:
        return None
    reason = unsafe_because(module, leak, readers(module, leak) if found is None else found)
    return Fix("release the leaves after the harvest", Safety.UNSAFE if reason else Safety.SAFE, edits, reason)


def unsafe_because(module: Module, leak: Leak, found: list[Reader]) -> str:
    """Why somebody may still want the `.grad`; empty where nobody can."""
    shared = [p for p in flow(module).published if any(k.meets(mine) for k in p.keys for mine in leak.keys)]
    if shared:
        return f"the leaves are published in line {shared[0].node.lineno} (LT006): whoever holds them may read .grad"
    if escape(leak) == CALLER:
        return "the tensor is the caller's, who may read its .grad"
    other = next((r for r in found if r.may_alias), None)
    return f"{other.path}:{other.line} may read .grad of the same leaves" if other else ""


def _together(module: Module, leak: Leak) -> list[ast.expr]:
    """All unreleased reads of the statement in which `leak` reads, in order."""
    home = _statement(module, leak.node)
    mine = [k.node for k in flow(module).every if _statement(module, k.node) is home]
    return sorted(mine, key=lambda n: (n.lineno, n.col_offset))


def _statement(module: Module, node: ast.AST) -> ast.AST | None:
    return next((n for n in module.ancestors(node) if isinstance(n, ast.stmt)), None)


def _comment(how: str) -> str:
    """A comment only where the source itself shows the holder."""
    if how in {CALLEE, CALLER}:
        return ""
    place = "ctx.saved_tensors" if how == "saved_tensors" else how
    return f"# {place} can outlive this call and keeps the leaves, and with them their .grad."

"""Where a release belongs: the function that harvests, the release in it, and a hash of all that leads up to the harvest.

The hash survives the fix and a comment (both come after the harvest) and changes with anything that could change who holds
the leaves.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

from lifetime.linter.model import HOLDER_MARK
from lifetime.linter.module import Function, Module

GRAD = "grad"


def function_named(module: Module, qualified: str) -> Function | None:
    """The function of that qualified name (`Class.method`), the last one where there are several."""
    plain = qualified.replace(".<locals>", "")
    return next((f for f in reversed(module.functions) if module.qualified(f) == plain), None)


def context_hash(function: Function) -> str:
    """A hash of the statements before the one that first reads `.grad`; comments and formatting do not count."""
    before = []
    for statement in function.body:
        if any(_reads_grad(node) for node in ast.walk(statement)):
            break
        before.append(ast.unparse(statement))
    return hashlib.sha1("\n".join([function.name, *before]).encode()).hexdigest()[:16]


def release_of(module: Module, function: Function) -> ast.stmt | None:
    """The statement that clears the harvested leaves: the outermost one around `x.grad = None` that does not harvest itself."""
    for node in _clears(function):
        statement: ast.stmt = node
        for outer in module.ancestors(node):
            if outer is function or not isinstance(outer, ast.stmt) or _harvests(outer):
                break
            statement = outer
        return statement
    return None


def named_holder(module: Module, release: ast.stmt) -> tuple[int, str] | None:
    """Line and fingerprint of the holder that the comment block right above a release names."""
    for line in range(release.lineno - 1, 0, -1):
        text = module.lines[line - 1].strip()
        if not text.startswith("#"):
            return None
        if found := HOLDER_MARK.search(text):
            return line, found[1]
    return None


def commented_harvests(module: Module) -> Iterator[ast.Attribute]:
    """The first `.grad` read of each function whose release names its holder in a comment: whom a run can ask about."""
    for function in module.functions if HOLDER_MARK.search(module.source) else ():
        release = release_of(module, function)
        reads = [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and _reads_grad(node)]
        if release is not None and named_holder(module, release) and reads:
            yield min(reads, key=lambda node: (node.lineno, node.col_offset))


def _clears(function: Function) -> Iterator[ast.stmt]:
    """Assignments of None to a `.grad`, in source order."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is_clear(node)]
    yield from sorted(found, key=lambda node: node.lineno)


def _is_clear(node: ast.Assign) -> bool:
    none = isinstance(node.value, ast.Constant) and node.value.value is None
    return none and any(isinstance(t, ast.Attribute) and t.attr == GRAD for t in node.targets)


def _harvests(statement: ast.stmt) -> bool:
    """It reads a `.grad` outside a test: `if x.grad is not None: x.grad = None` guards, it does not harvest."""
    tests = {id(n) for s in ast.walk(statement) if isinstance(s, (ast.If, ast.IfExp)) for n in ast.walk(s.test)}
    return any(_reads_grad(node) and id(node) not in tests for node in ast.walk(statement))


def _reads_grad(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == GRAD and isinstance(node.ctx, ast.Load)

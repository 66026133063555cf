"""Whether a harvest is the last look at its leaves: not deferred, and not repeated while nothing has filled them anew."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from lifetime.linter.blocks import Loop, block_of, statement_of
from lifetime.linter.flow.names import last_name
from lifetime.linter.module import Function, Module

OWNERS = {"self", "ctx", "cls"}
VIEWS = {"map", "filter", "zip", "iter", "enumerate", "reversed", "islice", "range", "len", "values", "items", "list", "tuple"}
"""Calls that yield the elements of what they are given, each once."""
PASSING = (VIEWS | {"partial", "next", "pop", "dict", "set", "sorted", "get"}) - {"len", "range"}
AGAIN = {"cycle", "repeat", "product", "permutations", "combinations", "combinations_with_replacement", "pairwise", "choices"}
HARMLESS = VIEWS | {"isinstance", "id", "type", "print", "repr", "str", "next", "sorted", "hasattr", "is_tensor", "append"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def holders(node: ast.AST) -> set[str]:
    """Names from which `node` takes its tensors: `leaves`, `self.inputs`."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id in OWNERS:
            found.add(f"{inner.value.id}.{inner.attr}")
        elif isinstance(inner, ast.Name) and inner.id not in OWNERS:
            found.add(inner.id)
    return found


def sources(module: Module, base: ast.expr, outer: ast.AST) -> set[str]:
    """The holders of `base` and of all that the loops and comprehensions between it and `outer` take it from."""
    found = _chosen(base)
    for node in module.ancestors(base):
        if node is outer:
            break
        loops = [(g.target, g.iter) for g in getattr(node, "generators", ())]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            loops = [(node.target, node.iter)]
        for target, iterated in reversed(loops):
            if found & holders(target):
                found = (found - holders(target)) | _chosen(iterated)
        call = module.parents.get(node) if isinstance(node, ast.Lambda) else None
        if isinstance(call, ast.Call):
            found |= {name for argument in call.args[1:] for name in _chosen(argument)}
    return found


def _chosen(node: ast.expr) -> set[str]:
    """Holders of `node`, without those that only count or compute: of `leaves[i:]` and `leaves[i % 2]` that is `leaves`."""
    if isinstance(node, ast.Subscript):
        index = _chosen(node.slice) if isinstance(node.slice, (ast.Name, ast.Subscript, ast.Attribute)) else set()
        return _chosen(node.value) | index
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        return {name for part in [*node.args, *([inner] if inner else [])] for name in _chosen(part)}
    return holders(node)


def renews(module: Module, loop: ast.AST, read: ast.expr, base: ast.expr) -> bool:
    """Whether each round of `loop` surely looks at leaves of its own: it makes them before the read, or they are its elements."""
    needed = sources(module, base, loop)
    for _ in range(10):
        if isinstance(loop, ast.For) and needed & holders(loop.target) and _distinct(loop.iter):
            return True
        more: set[str] = set()
        for target, value in _bound_before(module, loop, read):
            if needed & holders(target):
                if _makes(value):
                    return True
                more |= _chosen(value)
        if more <= needed:
            return False
        needed |= more
    return False


def looks_beyond(module: Module, loop: ast.AST, read: ast.expr, base: ast.expr) -> bool:
    """Whether a round of `loop` may look at leaves of other rounds too: at all of `leaves` beside the one that is its own."""
    own = holders(loop.target) if isinstance(loop, ast.For) else set()
    if not own & sources(module, base, loop):
        return False
    function = module.enclosing_function(loop)
    wide = (sources(module, base, function) if function else set()) - own
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
            if sources(module, node.value, loop) & wide and not renews(module, loop, node, node.value):
                return True
        elif hands_on(node, wide) and not (isinstance(loop, ast.For) and loop.iter in [node, *module.ancestors(node)]):
            return True
    return False


def _distinct(iterated: ast.expr) -> bool:
    """Whether no element comes twice, as far as the expression shows."""
    for node in ast.walk(iterated):
        if isinstance(node, ast.BinOp) or (isinstance(node, ast.Call) and last_name(node.func) in AGAIN):
            return False
        parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
        if len({ast.dump(part) for part in parts}) < len(parts):
            return False
    return True


def _makes(value: ast.expr) -> bool:
    if isinstance(value, (ast.List, ast.Dict)) and not ast.unparse(value).strip("[]{}"):
        return True
    return any(isinstance(n, ast.Call) and last_name(n.func) not in VIEWS for n in ast.walk(value))


def _bound_before(module: Module, loop: ast.AST, read: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Assignments that each round of `loop` makes before `read`."""
    for statement in surely_before(module, loop, read):
        if isinstance(statement, ast.Assign):
            yield from ((target, statement.value) for target in statement.targets)
        elif isinstance(statement, ast.AnnAssign) and statement.value:
            yield statement.target, statement.value


def surely_before(module: Module, outer: ast.AST, node: ast.AST) -> Iterator[ast.stmt]:
    """Statements within `outer` that have run whenever `node` is reached."""
    statement = statement_of(module, node)
    while statement is not None and statement is not outer:
        block = block_of(module, statement)
        for earlier in block[: block.index(statement)]:
            yield from _unconditional(earlier)
        parent = module.parents.get(statement)
        while isinstance(parent, (ast.ExceptHandler, ast.match_case)):
            parent = module.parents.get(parent)
        statement = parent if isinstance(parent, ast.stmt) else None


def _unconditional(statement: ast.stmt) -> Iterator[ast.stmt]:
    yield statement
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        for inner in statement.body:
            yield from _unconditional(inner)


def loops_around(module: Module, node: ast.AST, function: Function) -> list[ast.stmt]:
    """Loops in whose body `node` stands, outermost first."""
    found: list[ast.stmt] = []
    child = node
    for parent in module.ancestors(node):
        if parent is function:
            break
        if isinstance(parent, Loop) and (child in parent.body or (isinstance(parent, ast.While) and child is parent.test)):
            found.insert(0, parent)
        child = parent
    return found


def aliases(function: Function, leaves: set[str]) -> set[str]:
    """`leaves` and the names that stand for them, or for some of them, anywhere in `function`."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs += [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value:
            pairs.append((node.target, node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            pairs.append((node.target, node.iter))
    pairs = [(target, value) for target, value in pairs if _passes_on(value)]
    found, known = set(leaves), -1
    while known < len(found):
        known = len(found)
        found.update(*(holders(target) for target, value in pairs if holders(value) & found))
    return found


def _passes_on(value: ast.expr) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and last_name(node.func) not in PASSING:
            return False
        if isinstance(node, (ast.Constant, ast.Compare)) or (isinstance(node, ast.Attribute) and node.attr == "grad"):
            return isinstance(node, ast.Constant) and not isinstance(value, ast.Constant)
    return True


def stored(statements: Iterable[ast.AST]) -> set[str]:
    """Holders that are bound, deleted or emptied in `statements`; names of a comprehension are its own."""
    found: set[str] = set()
    pending = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.comprehension):
            pending += [node.iter, *node.ifs]
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found |= holders(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"clear", "pop", "remove"}:
            found |= holders(node.func.value)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found |= set(node.names)
        pending += ast.iter_child_nodes(node)
    return found


def hands_on(node: ast.AST, leaves: set[str]) -> bool:
    """Whether `node` calls something unknown with the leaves themselves."""
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in HARMLESS or (_is_torch(node.func) and "grad" not in name):
        return False
    given = [*node.args, *(k.value for k in node.keywords)]
    return any(not isinstance(a, COMPREHENSIONS) and holders(a) & leaves for a in given)


def _is_torch(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {"torch", "F"}

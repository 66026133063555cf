"""What releases one `.grad` read: a clear, or a loop over the very leaves, under the conditions of the read."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from lifetime.linter.flow.names import last_name
from lifetime.linter.module import Module

LAZY = {"map", "filter", "zip", "iter", "enumerate", "reversed", "chain", "islice", "starmap"}
MAPPERS = ("tree_map", "tree_map_only", "map_structure", "map_tree")
INDENT = "    "


@dataclass(frozen=True)
class Plan:
    """Lines that release, without indentation, and what is needed around them."""

    lines: tuple[str, ...]


def plan(module: Module, statement: ast.stmt, read: ast.expr) -> Plan | None:
    """How to release what `read` reads, behind `statement`."""
    if isinstance(read, ast.Call) and last_name(read.func) == "map":
        return _after_map(module, read, read)
    base = read.args[0] if isinstance(read, ast.Call) else read.value if isinstance(read, ast.Attribute) else None
    if base is None:
        return None
    conditions: list[str] = [f'getattr({ast.unparse(base)}, "grad", None) is not None'] if isinstance(read, ast.Call) else []
    child: ast.AST = read
    for node in module.ancestors(read):
        if node is statement:
            break
        if isinstance(node, ast.IfExp) and child is not node.test:
            conditions.insert(0, module.text(node.test) if child is node.body else _negated(module, node.test))
        elif isinstance(node, ast.BoolOp) and child is not node.values[0]:
            return None
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return _after_comprehension(module, node, base, conditions)
        elif isinstance(node, ast.Lambda):
            return _after_lambda(module, node, read)
        child = node
    if isinstance(statement, ast.Return) and _reads_late(base):
        return None
    return Plan(_conditional(conditions, f"{_text(module, base)}.grad = None"))


def _conditional(conditions: list[str], line: str) -> tuple[str, ...]:
    needed = [c for c in conditions if c]
    return (f"if {' and '.join(needed)}:", INDENT + line) if needed else (line,)


def _text(module: Module, node: ast.expr) -> str:
    return " ".join(module.text(node).split())


def _reads_late(base: ast.expr) -> bool:
    """A call would run again."""
    return any(isinstance(n, (ast.Call, ast.Await, ast.NamedExpr)) for n in ast.walk(base))


def _negated(module: Module, test: ast.expr) -> str:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return module.text(inner)
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return f"{module.text(left)} is not None"
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return f"{module.text(left)} is None"
        case ast.Name() | ast.Attribute() | ast.Call():
            return f"not {module.text(test)}"
    return f"not ({module.text(test)})"


def _after_comprehension(module: Module, node: ast.AST, base: ast.expr, conditions: list[str]) -> Plan | None:
    """A loop over what the comprehension runs over."""
    assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
    if len(node.generators) != 1 or (isinstance(node, ast.GeneratorExp) and not _consumed(module, node)):
        return None
    generator = node.generators[0]
    over = _leaf_loop(module, generator.target, generator.iter, base)
    if over is None or (over[1] is None and _reads_late(generator.iter) and not _repeatable(generator.iter)):
        return None
    target, iterated = over[0], over[1] or _text(module, generator.iter)
    needed = [*(module.text(c) for c in generator.ifs), *conditions]
    inner = _conditional(needed, f"{_text(module, base)}.grad = None")
    return Plan((f"for {target} in {iterated}:", *(INDENT + line for line in inner)))


def _leaf_loop(module: Module, target: ast.expr, iterated: ast.expr, base: ast.expr) -> tuple[str, str | None] | None:
    """Target and iterable of the shortest loop that still binds every name of `base`; iterable None: as it is."""
    used = {n.id for n in ast.walk(base) if isinstance(n, ast.Name)}
    whole = _text(module, target), None
    if not isinstance(iterated, ast.Call) or not isinstance(target, ast.Tuple):
        return whole
    name = last_name(iterated.func)
    bound = [{n.id for n in ast.walk(e) if isinstance(n, ast.Name)} for e in target.elts]
    hits = [i for i, names in enumerate(bound) if names & used]
    if len(hits) != 1:
        return whole
    only = _text(module, target.elts[hits[0]])
    if name == "zip" and len(iterated.args) == len(target.elts) and not any(isinstance(a, ast.Starred) for a in iterated.args):
        return only, _text(module, iterated.args[hits[0]])
    if name == "enumerate" and hits == [1]:
        return only, _text(module, iterated.args[0])
    if name == "items" and hits == [1] and isinstance(iterated.func, ast.Attribute):
        return only, f"{_text(module, iterated.func.value)}.values()"
    return whole


def leaves_text(module: Module, base: ast.expr) -> str:
    """The expression that holds the leaves: what the loop runs over where `base` is a loop variable."""
    used = {n.id for n in ast.walk(base) if isinstance(n, ast.Name)}
    for node in module.ancestors(base):
        loops = [(g.target, g.iter) for g in getattr(node, "generators", ())]
        if isinstance(node, (ast.For, ast.AsyncFor)):
            loops = [(node.target, node.iter)]
        for target, iterated in loops:
            if used & {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}:
                found = _leaf_loop(module, target, iterated, base)
                return (found[1] if found else None) or _text(module, iterated)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return _text(module, base)


def _repeatable(node: ast.expr) -> bool:
    """Running it again yields the same leaves: views and filters of containers."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(last_name(c.func) in {*LAZY, "range", "len", "values", "items", "list", "tuple"} for c in calls)


def _consumed(module: Module, node: ast.AST) -> bool:
    """Whether a generator is exhausted by the statement it stands in: then the release comes after its last read."""
    around = module.parents.get(node)
    if isinstance(around, ast.Call) and node in around.args:
        return _consumed(module, around) if last_name(around.func) in LAZY else True
    if isinstance(around, ast.Starred):
        return True
    return isinstance(around, ast.Assign) and isinstance(around.targets[0], (ast.Tuple, ast.List))


def _after_lambda(module: Module, node: ast.Lambda, read: ast.expr) -> Plan | None:
    """`tree_map(lambda t: t.grad, leaves)`: the same tree, each leaf released."""
    call = module.parents.get(node)
    if (
        not isinstance(call, ast.Call)
        or not call.args
        or call.args[0] is not node
        or len(node.args.args) != 1
        or len(call.args) < 2
    ):
        return None
    if last_name(call.func) == "map":
        return _after_map(module, call, read)
    if last_name(call.func) not in MAPPERS or read is not node.body:
        return None
    name = node.args.args[0].arg
    rest = ", ".join(_text(module, a) for a in call.args[1:2])
    return Plan((f'{_text(module, call.func)}(lambda {name}: setattr({name}, "grad", None), {rest})',))


def _after_map(module: Module, call: ast.Call, read: ast.expr) -> Plan | None:
    if len(call.args) != 2 or not _consumed(module, call) or _reads_late(call.args[1]):
        return None
    function = call.args[0]
    name = function.args.args[0].arg if isinstance(function, ast.Lambda) else "leaf"
    if isinstance(function, ast.Lambda) and not (isinstance(read, ast.Attribute) and function.body is read):
        return None
    return Plan((f"for {name} in {_text(module, call.args[1])}:", f"{INDENT}{name}.grad = None"))

"""The release that a harvest lacks, as edits: in the same block, over the very leaves, guarded as the harvest is."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass

from lifetime.linter.blocks import block_of, statement_of
from lifetime.linter.capture import Capture
from lifetime.linter.flow.names import last_name
from lifetime.linter.model import Edit, Span
from lifetime.linter.module import Function, Module

LAZY = {"map", "filter", "zip", "iter", "enumerate", "reversed", "chain", "islice", "starmap"}
MAPPERS = ("tree_map", "tree_map_only", "map_structure", "map_tree")
INDENT = "    "
HEADS = (ast.While, ast.With, ast.AsyncWith, ast.Match, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""In the head of these there is no place that is surely reached once and behind the read."""


@dataclass(frozen=True)
class Plan:
    """Lines that release, without indentation, and what is needed around them."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """Where a release can go: behind `anchor`, the last statement of the block that reads the same leaves."""

    statement: ast.stmt
    anchor: ast.stmt
    function: Function


def site(module: Module, reads: list[ast.expr], later: list[ast.expr]) -> Site | None:
    """The place behind the harvest `reads` and behind the `later` reads of the same leaves; None where there is none for sure."""
    statement = statement_of(module, reads[0])
    function = module.enclosing_function(reads[0])
    if statement is None or function is None or isinstance(statement, HEADS):
        return None
    block = block_of(module, statement)
    following = block[block.index(statement) :]
    wanted = [next((s for s in following if _inside(s, node)), None) for node in later]
    if None in wanted:
        return None
    anchor = max([statement, *(s for s in wanted if s)], key=lambda s: s.lineno)
    between = following[: following.index(anchor) + 1]
    if any(_leaves_early(s) for s in between if not isinstance(s, ast.Return)):
        return None
    alone = _alone(module, statement) and _alone(module, anchor)
    return Site(statement, anchor, function) if alone else None


def exclusive(module: Module, a: ast.AST, b: ast.AST) -> bool:
    """Whether `a` and `b` stand in two branches of which only one runs."""
    around = {id(n): inner for inner, n in _chain(module, a)}
    for inner, node in _chain(module, b):
        if id(node) in around:
            other = around[id(node)]
            if isinstance(node, ast.If):
                return (other in node.body) != (inner in node.body) and node.test not in {other, inner}
            return isinstance(node, ast.Match) and other is not inner
    return False


def _chain(module: Module, node: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """Each ancestor with the child that leads to `node`."""
    steps = [node, *module.ancestors(node)]
    return list(zip(steps, steps[1:], strict=False))


def _inside(statement: ast.stmt, node: ast.AST) -> bool:
    return statement.lineno <= getattr(node, "lineno", 0) <= (statement.end_lineno or statement.lineno)


def _leaves_early(statement: ast.stmt) -> bool:
    return any(isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(statement))


def release_edits(
    module: Module, place: Site, reads: list[ast.expr], guard: str, imports: str, comment: str
) -> tuple[Edit, ...] | None:
    """Edits that release at `place` what `reads` harvest; None where the harvest is not understood well enough.

    `guard` is a condition (empty: none) under which the release runs, `imports` a line that must precede it.
    """
    plans = [_plan(module, place.statement, read) for read in reads]
    if not all(plans):
        return None
    lines = dict.fromkeys("\n".join(p.lines) for p in plans if p)
    block = [*([comment] if comment else []), *"\n".join(lines).split("\n")]
    if guard:
        column = module.span(place.anchor).start_column
        block = ([imports] if imports else []) + [*guarded(module, guard, column), *(INDENT + line for line in block)]
    return _placed(module, place.anchor, place.function, block)


def guarded(module: Module, guard: str, column: int) -> list[str]:
    """The head of the guard, as black writes it at `column`."""
    line = f"if {guard}:"
    if column + len(line) <= line_length(module.file) or not guard.startswith("not ("):
        return [line]
    return ["if not (", INDENT + guard.removeprefix("not (").removesuffix(")"), "):"]


def line_length(file: str) -> int:
    """What black or ruff is told in the nearest pyproject.toml; 88 where nobody says."""
    folder = os.path.dirname(os.path.abspath(file)) if file else ""
    while folder:
        try:
            with open(os.path.join(folder, "pyproject.toml"), encoding="utf-8") as handle:
                found = re.search(r"(?m)^\s*line[-_]length\s*=\s*(\d+)", handle.read())
            return int(found[1]) if found else 88
        except (OSError, UnicodeDecodeError):
            parent = os.path.dirname(folder)
            folder = parent if parent != folder else ""
    return 88


def _alone(module: Module, statement: ast.stmt) -> bool:
    """Whether the statement has its lines for itself."""
    span = module.span(statement)
    before = module.lines[span.start_line - 1][: span.start_column]
    behind = module.lines[span.end_line - 1][span.end_column :].strip()
    return not before.strip() and (not behind or behind.startswith("#"))


def _plan(module: Module, statement: ast.stmt, read: ast.expr) -> Plan | None:
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


def _placed(module: Module, statement: ast.stmt, function: Function, block: list[str]) -> tuple[Edit, ...]:
    """`block` behind `statement`; a return is split into a name, the block and the return of the name."""
    span = module.span(statement)
    indent = module.lines[span.start_line - 1][: span.start_column]
    edits = []
    if isinstance(statement, ast.Return):
        name = _unused(module, function)
        at = Span(span.start_line, span.start_column, span.start_line, span.start_column + len("return"))
        edits.append(Edit(at, f"{name} ="))
        block = [*block, f"return {name}"]
    last = len(module.lines[span.end_line - 1])
    text = "".join(f"\n{indent}{line}" for line in block)
    edits.append(Edit(Span(span.end_line, last, span.end_line, last), text))
    return tuple(edits)


def _unused(module: Module, function: Function) -> str:
    """A name for the hoisted value that the function does not use."""
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} | {
        a.arg for a in ast.walk(function) if isinstance(a, ast.arg)
    }
    candidates = ("grads", "input_grads", "result", "harvested", *(f"grads_{n}" for n in range(1, 1000)))
    return next(c for c in candidates if c not in names)


def guard_of(capture: Capture, module: Module, node: ast.AST) -> tuple[str, str] | None:
    """The guard and the import it needs at `node`; None where the file has no way to ask."""
    query = capture.query or "torch.cuda.is_current_stream_capturing()"
    name = query.split("(")[0].split(".")[0]
    visible = _visible(module, node)
    if name in visible:
        # Without CUDA in the build torch's own query raises.
        asks_torch = "is_current_stream_capturing" in query and "torch" in visible
        return (f"not (torch.cuda.is_available() and {query})" if asks_torch else f"not {query}"), ""
    for found in ast.walk(module.tree):
        if isinstance(found, ast.ImportFrom) and any((a.asname or a.name) == name for a in found.names):
            source = "." * found.level + (found.module or "")
            alias = next(a for a in found.names if (a.asname or a.name) == name)
            what = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
            return f"not {query}", f"from {source} import {what}"
    return None


def _visible(module: Module, node: ast.AST) -> set[str]:
    """Names bound at the top of the file, or imported in the function before `node`."""
    found: set[str] = set()
    function = module.enclosing_function(node)
    inside = [n for n in ast.walk(function) if isinstance(n, (ast.Import, ast.ImportFrom))] if function else []
    earlier = [n for n in inside if n.lineno < getattr(node, "lineno", 0)]
    for statement in [*module.tree.body, *earlier]:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in statement.names}
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found.add(statement.name)
    return found

"""What releases one `.grad` read: a clear, or a loop over the very leaves, under the conditions of the read."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from lifetime.linter.blocks import statement_of
from lifetime.linter.flow.names import last_name
from lifetime.linter.module import Module
from lifetime.linter.release_order import holders, stored

LAZY = {"map", "filter", "zip", "iter", "enumerate", "reversed", "chain", "islice", "starmap"}
MAPPERS = ("tree_map", "tree_map_only", "map_structure", "map_tree")
CONSUMERS = {"tuple", "list", "set", "frozenset", "dict", "sum", "max", "min", "sorted", "any", "all", "deque", "extend", "update"}
"""What is done with the generator that it is given when it returns."""
ASKS = {"isinstance", "hasattr", "getattr", "len", "id", "type", "callable", "bool", "int", "sum", "any", "all", "norm", "item"}
INDENT = "    "


@dataclass(frozen=True)
class Plan:
    """Lines that release, without indentation."""

    lines: tuple[str, ...]


def plan(module: Module, statement: ast.stmt, read: ast.expr) -> Plan | None:
    """How to release what `read` reads, behind `statement`; None where that runs later, or again, or needs names of another
    scope."""
    steps = _Steps(module, read)
    child: ast.AST = read
    for node in module.ancestors(read):
        if isinstance(node, ast.stmt):
            break
        if not steps.out_of(node, child):
            return None
        child = node
    inner = statement_of(module, read)
    while inner is not None and inner is not statement:
        inner = steps.out_of_loop(inner)
    return Plan(steps.conditional()) if inner is statement and steps.lines else None


class _Steps:
    """The release of one read, carried outwards: through the conditions, the scope and the loops around it."""

    def __init__(self, module: Module, read: ast.expr) -> None:
        self.module = module
        self.read = read
        self.conditions: list[str] = []
        self.lines: tuple[str, ...] = ()
        self.scoped = False
        base = read.args[0] if isinstance(read, ast.Call) else read.value if isinstance(read, ast.Attribute) else None
        if isinstance(read, ast.Call) and last_name(read.func) == "map":
            found = _after_map(module, read, read)
            self.lines = found.lines if found else ()
            self.scoped = True
        elif base is not None and not _reads_late(base):
            self.lines = (f"{_text(module, base)}.grad = None",)
            if isinstance(read, ast.Call):
                self.conditions = [f'getattr({ast.unparse(base)}, "grad", None) is not None']
        self.base = base

    def conditional(self) -> tuple[str, ...]:
        return _conditional([c for c in self.conditions if c], self.lines)

    def out_of(self, node: ast.AST, child: ast.AST) -> bool:
        """Leaves an expression; False where that cannot be done."""
        if not self.lines:
            return False
        if isinstance(node, ast.IfExp) and child is not node.test:
            self.conditions.insert(0, self.module.text(node.test) if child is node.body else _negated(self.module, node.test))
            return is_pure(node.test)
        if isinstance(node, ast.BoolOp):
            return child is node.values[0]
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            first = node.generators[0]
            if child is first and (first.iter is self.read or first.iter in self.module.ancestors(self.read)):
                return True  # what a comprehension runs over is computed at once, outside it
            return self._scope(_after_comprehension(self.module, node, self.base, self.conditions) if self.base else None)
        if isinstance(node, ast.Lambda):
            return self._scope(_after_lambda(self.module, node, self.read))
        return True

    def _scope(self, found: Plan | None) -> bool:
        if found is None or self.scoped:
            return False
        self.scoped, self.lines, self.conditions = True, found.lines, []
        return True

    def out_of_loop(self, statement: ast.stmt) -> ast.stmt | None:
        """The loop around `statement`, whose names the release brings along; None where there is no loop right around it."""
        around = self.module.parents.get(statement)
        if not isinstance(around, (ast.For, ast.While)) or statement not in around.body:
            return None
        own = holders(around.target) if isinstance(around, ast.For) else set()
        rebound = stored([*around.body, *([around.test] if isinstance(around, ast.While) else [])]) - own
        if names_in("\n".join(self.lines)) & rebound:
            return None
        if isinstance(around, ast.For) and names_in("\n".join(self.lines)) & holders(around.target):
            if _reads_late(around.iter) and not _repeatable(around.iter):
                return None
            head = f"for {_text(self.module, around.target)} in {_text(self.module, around.iter)}:"
            self.lines, self.conditions = (head, *(INDENT + line for line in self.conditional())), []
        return around


def names_in(text: str) -> set[str]:
    """Holders that lines of a release take from around them."""
    tree = ast.parse(text)
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return holders(tree) - own - {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}


def is_pure(node: ast.expr) -> bool:
    """Whether asking again gives the same answer and does nothing else, as far as the names show."""
    calls = [last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)]
    asks = all(name in ASKS or name.startswith(("is_", "has_", "needs_")) for name in calls)
    return asks and not any(isinstance(n, (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


def _conditional(needed: list[str], lines: tuple[str, ...]) -> tuple[str, ...]:
    return (f"if {' and '.join(needed)}:", *(INDENT + line for line in lines)) if needed else lines


def _text(module: Module, node: ast.expr) -> str:
    return " ".join(module.text(node).split())


def _reads_late(base: ast.expr) -> bool:
    """A call would run again."""
    return any(isinstance(n, (ast.Call, ast.Await, ast.NamedExpr, ast.Yield)) for n in ast.walk(base))


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
    if len(node.generators) != 1 or (isinstance(node, ast.GeneratorExp) and not consumed(module, node)):
        return None
    generator = node.generators[0]
    over = _leaf_loop(module, generator.target, generator.iter, base)
    if over is None or not all(is_pure(c) for c in generator.ifs):
        return None
    target, iterated = over[0], over[1] or _text(module, generator.iter)
    if not _repeatable(ast.parse(iterated, mode="eval").body):
        return None
    needed = [*(module.text(c) for c in generator.ifs), *conditions]
    inner = _conditional(needed, (f"{_text(module, base)}.grad = None",))
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
                counts = isinstance(iterated, ast.Call) and last_name(iterated.func) == "range"
                return (found[1] if found else None) or _text(module, base if counts else iterated)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return _text(module, base)


def _repeatable(node: ast.expr) -> bool:
    """Running it again yields the same leaves: views and filters of containers."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    again = not any(isinstance(n, (ast.Await, ast.NamedExpr, ast.Yield, ast.GeneratorExp)) for n in ast.walk(node))
    return again and all(last_name(c.func) in {*LAZY, "range", "len", "values", "items", "list", "tuple"} for c in calls)


def consumed(module: Module, node: ast.AST) -> bool:
    """Whether a generator is exhausted by the statement it stands in: then the release comes after its last read."""
    around = module.parents.get(node)
    if isinstance(around, ast.Call) and node in around.args:
        name = last_name(around.func)
        return consumed(module, around) if name in LAZY else name in CONSUMERS
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
    if len(call.args) != 2 or not consumed(module, call) or _reads_late(call.args[1]):
        return None
    function = call.args[0]
    name = function.args.args[0].arg if isinstance(function, ast.Lambda) else "leaf"
    if isinstance(function, ast.Lambda) and not (isinstance(read, ast.Attribute) and function.body is read):
        return None
    return Plan((f"for {name} in {_text(module, call.args[1])}:", f"{INDENT}{name}.grad = None"))

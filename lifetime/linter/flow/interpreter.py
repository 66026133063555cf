"""The whole machine: names, calls that are followed, context managers, fields."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from lifetime.linter.flow.calls import Call
from lifetime.linter.flow.classes import binding, is_autograd_function, member, method, named
from lifetime.linter.flow.index import imported as imported_names
from lifetime.linter.flow.index import index
from lifetime.linter.flow.machine import Exits
from lifetime.linter.flow.names import INTERESTING, last_name
from lifetime.linter.flow.scope import Scope
from lifetime.linter.flow.state import State, join
from lifetime.linter.flow.statements import Statements
from lifetime.linter.flow.values import EMPTY, Callee, ClassRef, Kind, Value, element, part, sequence, union
from lifetime.linter.module import Function, Module

DEPTH = 6
FieldReader = Callable[[Module, "ClassRef | None", str, bool], "Value | None"]


class Interpreter(Statements):
    """Walks one function. `fields` says what a class keeps under an attribute that this function did not fill."""

    def __init__(self, module: Module, in_function: bool = False, fields: FieldReader | None = None) -> None:
        super().__init__(module, in_function)
        self.fields = fields
        self.on_yield: Callable[[State], State | None] | None = None

    def walk(self, function: Function, owner: ClassRef | None) -> list[tuple[State, Value, ast.AST | None]]:
        """Every normal return of `function`: the state there, the value and the statement (None: it ran off its end)."""
        state, scope = State(), Scope(self.module, owner=owner)
        arguments = _parameters(function.args)
        static = any(last_name(d) == "staticmethod" for d in function.decorator_list)
        for number, node in enumerate(arguments):
            value = self.argument(node, state, function)
            if number == 0 and owner is not None and (not static or is_autograd_function(owner)):
                scope.receiver = node.arg
                value = Value(path="ctx" if is_autograd_function(owner) else "self", cls=owner, instance=True)
            state.names.set(scope, node.arg, value)
        for star in filter(None, (function.args.vararg, function.args.kwarg)):
            state.names.set(scope, star.arg, sequence(self.argument(star, state, function)))
        end = self.run(function.body, state, scope)
        returns = list(self.exits.returns)
        return [*returns, (end, EMPTY, None)] if end is not None else returns

    # names

    def eval_Name(self, node: ast.Name, state: State, scope: Scope) -> Value:
        place = state.names.holder(scope, node.id)
        value = state.names.get(place, node.id)
        if value is not None:
            value = self.without_void(value, state)
            return value if value.path or value.sequence or not value.keys else replace(value, path=node.id)
        names = index(scope.module)
        if node.id in names.functions or node.id in names.classes:
            found = named(scope.module, node.id)
            return Value(callee=found) if isinstance(found, Callee) else Value(cls=found)
        if node.id in names.variables:
            return Value(keys=frozenset({self.key(Kind.UNKNOWN, node, state, node.id)}), path=node.id)
        return Value(path=node.id)

    def local(self, name: str, scope: Scope) -> bool:
        return name not in index(scope.module).variables

    def run_Import(self, node: ast.Import | ast.ImportFrom, state: State, scope: Scope) -> State | None:
        index(scope.module).imports.update(imported_names(node))
        return state

    run_ImportFrom = run_Import

    # fields

    def place(self, path: str, node: ast.Attribute, state: State, scope: Scope) -> Value:
        base, _, name = path.rpartition(".")
        context = base == "ctx" or base.endswith(".ctx")
        if self.fields is not None and (context or base == "self"):
            found = self.fields(self.module, scope.owner, name, context)
            if found is not None and found.all_keys:
                return replace(found, path=path)
        return super().place(path, node, state, scope)

    def method_save_for_backward(self, call: Call, state: State, scope: Scope) -> Value | None:
        items = tuple(call.args) if call.starred is None else None
        value = (
            Value(items=items) if items is not None else sequence(union(*(element(a) if a.sequence else a for a in call.args)))
        )
        self.events.stores.append(("ctx.saved_tensors", value))
        return EMPTY

    # calls

    def lookup(self, call: Call, state: State, scope: Scope) -> Callee | None:
        function = call.node.func
        if call.function.cls is not None and not call.function.instance:
            return method(call.function.cls, "__init__")
        if isinstance(function, ast.Name):
            return self._by_name(function.id, call, scope)
        if not isinstance(function, ast.Attribute) or call.receiver is None:
            return None
        owner = call.receiver.cls
        if owner is not None:
            found = method(owner, function.attr, skip_own=_is_super(function.value))
            return replace(found, bound=binding(found.node, call.receiver, not call.receiver.instance)) if found else None
        if isinstance(function.value, ast.Name) and self._worth(call):
            found_member = member(scope.module, function.value.id, function.attr)
            return found_member if isinstance(found_member, Callee) else None
        return None

    def _by_name(self, name: str, call: Call, scope: Scope) -> Callee | None:
        names = index(scope.module)
        if name in names.functions or name not in names.imports or not self._worth(call):
            return None
        found = named(scope.module, name)
        return found if isinstance(found, Callee) else None

    def _worth(self, call: Call) -> bool:
        """Files are read only for helpers that get tensors, or promise some."""
        return bool(INTERESTING.search(call.name)) or any(v.all_keys for v in call.all)

    def call_super(self, call: Call, state: State, scope: Scope) -> Value | None:
        return Value(path="self", cls=scope.owner, instance=True) if scope.owner else None

    def follow(self, callee: Callee, call: Call, state: State, scope: Scope) -> Value | None:
        if len(self.context) >= DEPTH or any(c is call.node for c in self.context):
            return None
        if not any(self.is_leaf(k) for v in call.all for k in v.all_keys) and not self._interesting(callee):
            return None
        if _is_manager(callee.node):
            return Value(manager=(callee, call))
        inner = Scope(callee.module, callee.closure, callee.owner)
        made = self._made(call, callee)
        self._bind(callee, made or call, state, inner)
        value = self._execute(callee, call, state, inner)
        return made.args[0] if made else value

    def _made(self, call: Call, callee: Callee) -> Call | None:
        """For a class that is called: the same call with the new object in front."""
        if call.function.cls is None or call.function.instance or callee.bound:
            return None
        made = Value(path=f"#{id(call.node)}", cls=call.function.cls, instance=True)
        starred = None if call.starred is None else call.starred + 1
        return replace(call, args=[made, *call.args], starred=starred)

    def _execute(self, callee: Callee, call: Call, state: State, inner: Scope) -> Value | None:
        saved = self.exits, self.loops, self.context
        self.exits, self.loops, self.context = Exits(), [], (*self.context, call.node)
        try:
            if isinstance(callee.node, ast.Lambda):
                return self.eval(callee.node.body, state, inner)
            end = self.run(callee.node.body, state.copy(), inner)
            returns = self.exits.returns
        finally:
            self.exits, self.loops, self.context = saved
        capturing = state.capturing
        behind = join([*(s for s, _, _ in returns), end])
        if behind is None:
            return EMPTY
        state.become(behind)
        if capturing is not None:
            state.capturing = capturing
        if not self._defines(callee):
            state.names.forget(inner)
        values = [v for _, v, _ in returns]
        found = union(*values)
        return _tested(returns, found) if len(values) == 1 and end is None else found

    def _defines(self, callee: Callee) -> bool:
        """Whether a function of its own may outlive the call and still see its names."""
        memo = callee.module.memo.setdefault("defines", {})
        assert isinstance(memo, dict)
        if callee.node not in memo:
            nested = (n for n in ast.walk(callee.node) if n is not callee.node)
            memo[callee.node] = any(isinstance(n, (ast.FunctionDef, ast.Lambda)) for n in nested)
        return bool(memo[callee.node])

    def _interesting(self, callee: Callee) -> bool:
        memo = callee.module.memo.setdefault("interesting", {})
        assert isinstance(memo, dict)
        if callee.node not in memo:
            lines = callee.module.lines[callee.node.lineno - 1 : callee.node.end_lineno]
            memo[callee.node] = bool(INTERESTING.search("\n".join(lines)))
        return bool(memo[callee.node])

    def _bind(self, callee: Callee, call: Call, state: State, scope: Scope) -> None:
        arguments = callee.node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        given = [*callee.bound, *call.args]
        star = None if call.starred is None else call.starred + len(callee.bound)
        if callee.owner is not None and names:
            scope.receiver = names[0]
        for number, name in enumerate(names):
            if name in call.keywords:
                value = call.keywords[name]
            elif star is not None and number >= star:
                value = part(element(given[star]), f"[{number - star}]")
            else:
                value = given[number] if number < len(given) else EMPTY
            state.names.set(scope, name, value)
        for node in arguments.kwonlyargs:
            state.names.set(scope, node.arg, call.keywords.get(node.arg, EMPTY))
        if arguments.vararg is not None:
            rest = given[min(len(names), star if star is not None else len(names)) :]
            spread = sequence(union(*(element(v) if v.sequence else v for v in rest)))
            state.names.set(scope, arguments.vararg.arg, Value(items=tuple(rest)) if star is None else spread)
        if arguments.kwarg is not None:
            named_ones = (a.arg for a in arguments.kwonlyargs)
            rest_named = [v for k, v in call.keywords.items() if k not in {*names, *named_ones}]
            state.names.set(scope, arguments.kwarg.arg, sequence(union(*(element(v) if v.sequence else v for v in rest_named))))

    # context managers

    def run_With(self, node: ast.With | ast.AsyncWith, state: State, scope: Scope) -> State | None:
        return self._with(node.items, node.body, state, scope)

    run_AsyncWith = run_With

    def _with(self, items: list[ast.withitem], body: list[ast.stmt], state: State, scope: Scope) -> State | None:
        if not items:
            return self.run(body, state, scope)
        item, rest = items[0], items[1:]
        value = self.eval(item.context_expr, state, scope)

        def inside(entered: State, given: Value) -> State | None:
            if item.optional_vars is not None:
                self.assign(item.optional_vars, given, entered, scope)
            return self._with(rest, body, entered, scope)

        if value.manager is not None:
            return self._around(value.manager, state, inside)
        leaving = method(value.cls, "__exit__") if value.cls is not None and value.instance else None
        if leaving is None or value.cls is None:
            return inside(state, value)
        entering = method(value.cls, "__enter__")
        given = self._method_of(value, entering, item.context_expr, state, scope) if entering else value
        outer, self.exits = self.exits, Exits()
        end = inside(state, given)
        inner, self.exits = self.exits, outer
        for early, result, at in inner.returns:
            self._method_of(value, leaving, item.context_expr, early, scope)
            self.exits.returns.append((early, result, at))
        for found, into in ((inner.breaks, outer.breaks), (inner.continues, outer.continues)):
            for early in found:
                self._method_of(value, leaving, item.context_expr, early, scope)
            into.extend(found)
        if end is not None:
            self._method_of(value, leaving, item.context_expr, end, scope)
        return end

    def _method_of(self, value: Value, callee: Callee, node: ast.expr, state: State, scope: Scope) -> Value:
        made = ast.copy_location(ast.Call(node, [], []), node)
        call = Call(made, callee.node.name if not isinstance(callee.node, ast.Lambda) else "", EMPTY, value, [], {})
        return self.follow(replace(callee, bound=(value,)), call, state, scope) or EMPTY

    def _around(self, manager: tuple[Callee, object], state: State, body: Callable[[State, Value], State | None]) -> State | None:
        """Run the generator with `body` in the place of its `yield`; what leaves the body early runs the rest of it too."""
        callee, call = manager
        assert isinstance(call, Call) and not isinstance(callee.node, ast.Lambda)
        outer, hook = self.exits, self.on_yield
        early = Exits()
        scope = Scope(callee.module, callee.closure, callee.owner)
        self._bind(callee, call, state, scope)

        def run(resume: Callable[[State, Value], State | None], start: State) -> State | None:
            self.exits = Exits()
            self.on_yield = lambda s: resume(s, EMPTY)
            try:
                end = self.run(callee.node.body, start, scope)  # type: ignore[arg-type]
                return join([end, *(s for s, _, _ in self.exits.returns)])
            finally:
                self.exits, self.on_yield = outer, hook

        def resume(entered: State, given: Value) -> State | None:
            within, hook_within = self.exits, self.on_yield
            self.exits, self.on_yield = early, hook
            end = body(entered, given)
            self.exits, self.on_yield = within, hook_within
            return end

        start = state.copy()
        end = run(resume, state)
        for left, result, at in early.returns:
            if (after := run(lambda _, __, left=left: left, start.copy())) is not None:  # type: ignore[misc]
                outer.returns.append((after, result, at))
        outer.breaks += early.breaks
        outer.continues += early.continues
        return end

    def run_Expr(self, node: ast.Expr, state: State, scope: Scope) -> State | None:
        if isinstance(node.value, ast.Yield) and self.on_yield is not None:
            return self.on_yield(state)
        self.eval(node.value, state, scope)
        return state


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _is_manager(node: Function | ast.Lambda) -> bool:
    return not isinstance(node, ast.Lambda) and any(last_name(d).endswith("contextmanager") for d in node.decorator_list)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "super"


def _tested(returns: list[tuple[State, Value, ast.AST | None]], value: Value) -> Value:
    test = returns[0][1].test
    return replace(value, test=test) if test is not None else value

"""Words that decide: what is called backward, what looks like a weight, what asks about capture, what is a test."""

from __future__ import annotations

import ast
import re

from lifetime.linter.module import Function, Module

WEIGHT = re.compile(
    r"(?:^|_)(?:param|params|parameter|parameters|weight|weights|model|models|module|modules|optimizer)(?:_list|_group|_groups)?$"
)
CAPTURE = re.compile(r"captur", re.IGNORECASE)
RELEASER = re.compile(r"release|clear|drop|free|reset|none|discard|dealloc|clean|delete|del_", re.IGNORECASE)
DETACHER = re.compile(r"detach", re.IGNORECASE)
REGROUPER = re.compile(
    r"flatten|merge|unpack|leaves|reorder|regroup|as_tuple|to_tuple|as_list|to_list|ensure|chain|nest", re.IGNORECASE
)
MAPPER = re.compile(r"map|for_?each", re.IGNORECASE)
INTERESTING = re.compile(r"detach|grad|backward|captur|Variable|release|clear", re.IGNORECASE)
LOSS = re.compile(r"loss|cost|objective", re.IGNORECASE)
ENGINE = re.compile(r"engine|accelerator|fabric|optim|scaler|manager|amp|trainer|strategy|booster", re.IGNORECASE)
NOT_BACKWARD = re.compile(
    r"hook|save_for|need|^is_|^has_|^set_|^get_|^register|pre_backward|post_backward|_fn$|^no_|forward", re.IGNORECASE
)
MEASURES = re.compile(r"bench|perf_counter|time\.time|elapsed_time|cuda\.Event|timeit|profil", re.IGNORECASE)
BENCHMARK_FOLDERS = {"benchmark", "benchmarks", "bench", "profiling"}
RUNS = {"backward", "run_backward"}
"""What starts a backward in torch."""
FRESH = re.compile(
    r"^(?:rand|randn|randint|randperm|zeros|ones|full|empty|rand_like|randn_like|zeros_like|ones_like|full_like|empty_like"
    r"|arange|linspace|tensor|eye|normal)$"
)


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, of `c` and of `a[0].c`; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_backward_name(name: str) -> bool:
    return "backward" in name.lower() and not NOT_BACKWARD.search(name)


def hands_gradients(call: ast.Call) -> bool:
    """Whether `call` runs a backward and hands output gradients to it, as a piece of a larger backward does."""
    name = last_name(call.func)
    if name not in RUNS:
        return False
    keywords = {k.arg for k in call.keywords}
    if keywords & {"gradient", "grad_tensors"}:
        return True
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name == "run_backward" or (owner is not None and last_name(owner) == "autograd"):
        return len(call.args) > 1 or None in keywords
    if (
        owner is None
        or not call.args
        or ENGINE.search(last_name(owner))
        or isinstance(owner, ast.Call)
        and last_name(owner.func) == "super"
    ):
        return False
    given = call.args[0]
    return not LOSS.search(last_name(given) or ast.unparse(given)) and not isinstance(given, ast.Constant)


def runs_backward(call: ast.Call) -> bool:
    """Whether `call` goes to something called a backward, with outputs and their gradients."""
    return is_backward_name(last_name(call.func)) and len(call.args) + len(call.keywords) > 1


def is_benchmark(module: Module) -> bool:
    """Benchmarks run forward and backward on tensors of their own and end: only a `Function` in them is code like any other."""
    folders = module.path.replace("\\", "/").split("/")
    placed = folders[-1].startswith(("bench_", "benchmark_")) or not BENCHMARK_FOLDERS.isdisjoint(folders[:-1])
    return placed and bool(MEASURES.search(module.source))


def is_test_function(module: Module, function: Function) -> bool:
    chain = [function, *(n for n in module.ancestors(function) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))]
    return any(f.name.startswith(("test_", "_test_")) for f in chain)

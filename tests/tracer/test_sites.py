"""Sites: the expression that lint found hands its leaf over, and everything else about the module is as before."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from lifetime.heap.model import SiteVerdict
from lifetime.linter import engine, gate
from lifetime.linter.model import Finding, Severity, Span
from lifetime.tracer import probe
from lifetime.tracer.imports import Hook
from lifetime.tracer.loader import Rewriter
from lifetime.tracer.sites import Sites

MODULE = '''"""A recomputing function."""
from __future__ import annotations
import torch

KEPT = []

class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keep, x):
        ctx.keep, ctx.x = keep, x
        return x * 2

    @staticmethod
    def backward(ctx, g):
        leaves = [ctx.x.detach().requires_grad_()]
        with torch.enable_grad():
            out = leaves[0] * 2
        torch.autograd.backward(out, g)
        if ctx.keep:
            KEPT.append(leaves[0])
        return (None, *(leaf.grad for leaf in leaves))  # HARVEST

def reads():
    return [leaf.grad for leaf in KEPT]
'''


def finding(source: str, code: str, text: str) -> Finding:
    line = next(n for n, row in enumerate(source.splitlines(), 1) if text in row)
    start = source.splitlines()[line - 1].index(text)
    return Finding(code, "x", Severity.NOTE, "m.py", Span(line, start, line, start + len(text)), "f", "message")


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[ModuleType, Sites, Rewriter]]]:
    """Import a module of this text through the hook, lint finding what the test says it does."""
    monkeypatch.setenv("LIFETIME_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    hooks: list[Hook] = []
    names: list[str] = []

    def loaded(source: str, *found: tuple[str, str], only: tuple[str, ...] = ()) -> tuple[ModuleType, Sites, Rewriter]:
        name = f"module_under_trace_{len(names)}"
        (tmp_path / f"{name}.py").write_text(source)
        findings = tuple(finding(source, code, text) for code, text in found)
        monkeypatch.setattr(engine, "check_source", lambda *a, **k: findings)
        monkeypatch.setattr(gate, "hits", lambda data, codes: frozenset({"LT001"}) if b"# HARVEST" in data else frozenset())
        rewriter = Rewriter(only)
        hook = Hook(rewriter)
        hook.install()
        hooks.append(hook)
        names.append(name)
        sites = Sites(rewriter.spots)
        monkeypatch.setattr(probe, "on_watch", sites.on_watch)
        try:
            return importlib.import_module(name), sites, rewriter
        finally:
            hook.remove()

    yield loaded
    for name in names:
        sys.modules.pop(name, None)


def train(module: ModuleType, keep: bool) -> None:
    x = torch.ones(4, requires_grad=True)
    module.Recompute.apply(keep, x * 1).sum().backward()


def test_a_leaf_that_somebody_keeps_is_confirmed(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    for _ in range(3):
        train(module, keep=True)
        sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.hits, site.captured_hits) == (SiteVerdict.CONFIRMED, 3, 0)
    assert (site.bytes_per_step, site.outlived_call_bytes) == (16, 16)
    assert site.line == 21 and site.code == "LT001"


def test_a_leaf_that_dies_in_the_call_is_refuted(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    for _ in range(3):
        train(module, keep=False)
        sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.hits, site.bytes_per_step, site.outlived_call_bytes) == (SiteVerdict.REFUTED, 3, 0, 0)


def test_a_leaf_that_dies_between_the_call_and_the_boundary_outlived_its_call(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    train(module, keep=True)
    module.KEPT.clear()
    sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.outlived_call_bytes) == (SiteVerdict.REFUTED, 16)


def test_a_site_that_ran_and_was_never_judged_is_not_refuted(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    train(module, keep=True)
    sites.at_boundary(judged=False)
    (site,) = sites.report({})
    assert (site.verdict, site.hits) == (SiteVerdict.NOT_REACHED, 1)
    assert [gap.why for gap in sites.gaps()][0] == "it ran, but no step after warm-up ended: nothing is known of it"


def test_a_site_that_is_never_run_is_not_reached(load: Callable[..., Any]) -> None:
    _, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    sites.at_boundary(judged=True)
    assert [site.verdict for site in sites.report({})] == [SiteVerdict.NOT_REACHED]


def test_later_reads_are_named_and_the_harvest_is_none(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    try:
        train(module, keep=True)
        module.reads()
        module.reads()
        assert torch.ones(2, requires_grad=True).grad is None
        (site,) = sites.report({})
        assert [(reader.function, reader.line, reader.count) for reader in site.readers] in (
            [("reads.<locals>.<listcomp>", 24, 2)],
            [("<listcomp>", 24, 2)],
            [("reads", 24, 2)],
        )
    finally:
        sites.reads.remove()
    assert "grad" not in vars(torch.Tensor)


def test_gradients_of_other_tensors_behave_as_before(load: Callable[..., Any]) -> None:
    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    train(module, keep=True)
    try:
        assert "grad" in vars(torch.Tensor)
        leaf = torch.ones(3, requires_grad=True)
        leaf.grad = torch.zeros(3)
        assert leaf.grad.sum() == 0
        del leaf.grad
        assert leaf.grad is None
        with pytest.raises(RuntimeError, match="gradient"):
            leaf.grad = torch.zeros(4)
        parameter = torch.nn.Parameter(torch.ones(2))
        parameter.sum().backward()
        torch.optim.SGD([parameter], lr=1.0).step()
        assert parameter.tolist() == [0, 0]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert (leaf * 2).grad is None
        assert len(seen) == 1 and "non-leaf" in str(seen[0].message) and seen[0].filename == __file__
        subclass = torch.ones(2).as_subclass(type("Sub", (torch.Tensor,), {})).requires_grad_()
        subclass.sum().backward()
        assert type(subclass.grad) is torch.Tensor
    finally:
        sites.reads.remove()


def test_nothing_holds_a_watched_leaf(load: Callable[..., Any]) -> None:
    import weakref

    module, sites, _ = load(MODULE, ("LT001", "leaf.grad"))
    train(module, keep=True)
    leaf = weakref.ref(module.KEPT.pop())
    assert leaf() is None
    sites.at_boundary(judged=True)


def test_lines_source_and_pickles_are_as_before(load: Callable[..., Any]) -> None:
    module, _, _ = load(MODULE, ("LT001", "leaf.grad"))
    assert inspect.getsource(module.reads) == "def reads():\n    return [leaf.grad for leaf in KEPT]\n"
    assert (module.__doc__, module.reads.__code__.co_firstlineno) == ("A recomputing function.", 23)
    assert module.__file__ == module.__spec__.origin and inspect.getsource(module) == MODULE
    assert pickle.loads(pickle.dumps(module.Recompute)) is module.Recompute


def test_a_module_without_findings_is_loaded_by_the_normal_loader(load: Callable[..., Any]) -> None:
    module, sites, _ = load("def f():\n    return 1\n")
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    assert type(module.__spec__.loader) is importlib.machinery.SourceFileLoader
    code = compile(Path(module.__file__).read_text(), module.__file__, "exec", dont_inherit=True)
    assert module.f.__code__ == code.co_consts[0] and not sites.report({})


def test_a_gate_hit_without_findings_too(load: Callable[..., Any]) -> None:
    module, _, _ = load(MODULE)
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader and "@lifetime" not in vars(module)


def test_only_the_site_that_was_asked_for(load: Callable[..., Any]) -> None:
    _, sites, _ = load(MODULE, ("LT001", "leaf.grad"), ("LT004", "ctx.x"), only=("module_under_trace_0.py:21",))
    assert [site.code for site in sites.report({})] == ["LT001"]
    _, _, rewriter = load(MODULE, ("LT001", "leaf.grad"), only=("nowhere.py:3", "module_under_trace_1.py:21"))
    assert [gap.where for gap in rewriter.unmet()] == ["nowhere.py:3"]


def test_a_tensor_on_ctx_counts_while_it_lives(load: Callable[..., Any]) -> None:
    source = MODULE.replace("ctx.keep, ctx.x = keep, x", "ctx.keep = keep\n        ctx.x = x")
    module, sites, _ = load(source, ("LT004", "ctx.x"))
    x = torch.ones(4, requires_grad=True)
    out = module.Recompute.apply(False, x * 1)
    sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.bytes_per_step) == (SiteVerdict.CONFIRMED, 16)
    del out


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("x = getattr(leaf, 'grad', None)", "getattr(leaf, 'grad', None)"),
        ("x = leaf.grad.clone()", "leaf.grad.clone()"),
        ("x = leaf.grad if leaf.grad is not None else 0", "leaf.grad"),
        ("x = [g for leaf in [leaf] if (g := leaf.grad) is not None]", "leaf.grad"),
        ("x = list(map(lambda leaf: leaf.grad, [leaf]))", "leaf.grad"),
        ("print(f'{leaf.grad}')", "leaf.grad"),
        ("x = dict(a=leaf.grad)['a']", "leaf.grad"),
    ],
)
def test_every_spelling_of_the_read_hands_the_leaf_over(statement: str, text: str, load: Callable[..., Any]) -> None:
    source = f"import torch\ndef f(leaf):\n    {statement}  # HARVEST\n"
    module, sites, rewriter = load(source, ("LT001", text))
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    module.f(leaf)
    sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.hits, rewriter.gaps) == (SiteVerdict.CONFIRMED, 1, [])


@pytest.mark.parametrize(
    "statement",
    ["self.kept = [leaf]", "self.kept.append(leaf)", "return leaf", "self.a = self.b = {'k': (leaf,)}", "self.kept += [leaf]"],
)
def test_what_is_published_is_handed_over(statement: str, load: Callable[..., Any]) -> None:
    source = f"import torch\ndef f(self, leaf):\n    {statement}  # HARVEST\n"
    module, sites, _ = load(source, ("LT006", statement))
    holder = type("Holder", (), {"kept": []})()
    leaf = torch.ones(2)
    module.f(holder, leaf)
    sites.at_boundary(judged=True)
    (site,) = sites.report({})
    assert (site.verdict, site.hits, site.bytes_per_step) == (SiteVerdict.CONFIRMED, 1, 8)


def test_lint_that_breaks_is_a_gap_and_not_the_programs_failure(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("in a rule")

    _, _, rewriter = load("x = 1\n")
    monkeypatch.setattr(engine, "check_source", broken)
    tree = ast.parse(textwrap.dedent("x = 1  # HARVEST"))
    before = ast.dump(tree)
    assert rewriter.rewrite(tree, b"x = 1  # HARVEST", "/x/y.py") == ()
    assert ast.dump(tree) == before
    assert [(gap.where, gap.why) for gap in rewriter.gaps] == [
        ("/x/y.py", "not searched for sites: ZeroDivisionError('in a rule')")
    ]


def test_a_clean_module_is_not_read_again_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFETIME_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "m.py"
    file.write_text("x = 1\n")
    first = Rewriter()
    assert first("m", str(file)) is None
    first.clean.save()
    second = Rewriter()
    hook = Hook(lambda name, file: pytest.fail("asked again"), second.clean.__contains__)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    spec = hook.find_spec("m", None)
    assert spec is not None and spec.origin == str(file)
    file.write_text("x = 1  # longer\n")
    assert str(file) not in Rewriter().clean


def test_the_decision_is_cached_by_content(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module, _, _ = load(MODULE, ("LT001", "leaf.grad"))
    monkeypatch.setattr(engine, "check_source", lambda *a, **k: pytest.fail("linted twice"))
    again = Rewriter()
    loader = again(module.__name__, module.__file__)
    assert loader is not None and [spot.line for spot in again.spots.values()] == [21]
    assert "@lifetime" in loader.get_code(module.__name__).co_names
    Path(module.__file__).write_text(MODULE.replace("leaf.grad", "leaf.data"))
    monkeypatch.setattr(engine, "check_source", lambda *a, **k: ())
    assert Rewriter()(module.__name__, module.__file__) is None

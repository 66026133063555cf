"""What the flow reads beside the file itself: helpers that are imported, other readers in the package."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path

import pytest

from lifetime.linter.check import Place, check
from lifetime.linter.flow.escape import escape
from lifetime.linter.flow.fields import Fields
from lifetime.linter.flow.flow import flow
from lifetime.linter.flow.interpreter import Interpreter
from lifetime.linter.flow.machine import GiveUp
from lifetime.linter.flow.readers import readers
from lifetime.linter.flow.survey import survey
from lifetime.linter.flow.values import ClassRef
from lifetime.linter.module import Module
from lifetime.linter.why import explain_line

BACKWARD = """
from {source} import {names}


def backward(fn, xs, dy):
    leaves = fresh(xs)
    fn(*leaves).backward(dy)
    grads = [t.grad for t in leaves]
    release(leaves)
    return grads
"""
HELPERS = """
def fresh(xs):
    return [x.detach().requires_grad_() for x in xs]


def release(leaves):
    for t in leaves:
        t.grad = None


def keep(leaves):
    return len(leaves)
"""


def module(path: Path, text: str) -> Module:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return Module(str(path), text, ast.parse(text), str(path))


def package(tmp_path: Path) -> Path:
    root = tmp_path / "pkg"
    for folder in (root, root / "ops"):
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
    (root / "helpers.py").write_text(HELPERS)
    return root


@pytest.mark.parametrize("source", ["pkg.helpers", "..helpers"])
def test_an_imported_helper_releases(tmp_path: Path, source: str) -> None:
    root = package(tmp_path)
    own = module(root / "ops" / "a.py", BACKWARD.format(source=source, names="fresh, release"))
    assert flow(own).leaks == []
    assert str(root / "helpers.py") in own.loads


def test_an_imported_helper_that_only_counts_releases_nothing(tmp_path: Path) -> None:
    text = BACKWARD.format(source="..helpers", names="fresh, keep as release")
    own = module(package(tmp_path) / "ops" / "a.py", text)
    assert [leak.node.lineno for leak in flow(own).leaks] == [8]


def test_a_reexported_helper_is_found(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "__init__.py").write_text("from .helpers import fresh, release\n")
    own = module(root / "ops" / "a.py", BACKWARD.format(source="pkg", names="fresh, release"))
    assert flow(own).leaks == []


def test_an_unknown_release_is_trusted(tmp_path: Path) -> None:
    text = BACKWARD.format(source="elsewhere", names="release").replace("fresh(xs)", "[x.detach() for x in xs]")
    assert flow(module(tmp_path / "a.py", text)).leaks == []


STAGE = """
class Stage:
    def forward(self, x):
        self.kept = x.detach().requires_grad_()
        self.out = self.module(self.kept)

    def backward(self, dy):
        self.out.backward(dy)
        return self.kept.grad

    def norm(self):
        return self.kept.grad.norm()


class Other:
    def norm(self):
        return self.kept.grad.norm()
"""


def test_readers_say_who_may_see_the_leaves(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "log.py").write_text("def log(stage):\n    print(stage.kept.grad)\n\n\ndef step(p):\n    return p.grad\n")
    own = module(root / "stage.py", STAGE)
    (leak,) = flow(own).leaks
    assert escape(leak) == "self.kept"
    seen = {(Path(r.path).name, r.line): r.may_alias for r in readers(own, leak)}
    assert seen == {("stage.py", 12): True, ("stage.py", 17): False, ("log.py", 2): True, ("log.py", 6): False}


def test_a_reader_makes_the_fix_unsafe_and_names_itself(tmp_path: Path) -> None:
    own = module(package(tmp_path) / "stage.py", STAGE)
    (finding,) = check(own, frozenset({"LT001"}), "stage.py").findings
    assert finding.fix is not None and finding.fix.safety.value == "unsafe" and ":12 " in finding.fix.reason
    assert finding.severity.value == "warning" and finding.evidence["escape"] == "self.kept"


def test_leaves_that_never_leave_are_a_note_and_safe_to_release() -> None:
    text = "def backward(fn, x, dy):\n    leaf = x.detach()\n    fn(leaf).backward(dy)\n    return leaf.grad\n"
    own = Module("a.py", text, ast.parse(text))
    (finding,) = check(own, frozenset({"LT001"}), Place("a.py", "", "a.py").name).findings
    assert finding.severity.value == "note" and finding.evidence["escape"] == "callee"
    assert finding.fix is not None and finding.fix.safety.value == "safe"


SILENT = [
    ("loss.backward()\n    return leaf.grad", "no backward"),
    ("fn(leaf).backward(dy)\n    return [p.grad for p in fn.parameters()]", "parameters"),
    ("fn(leaf).backward(dy)\n    return leaf.grad, setattr(leaf, 'grad', None)", "released in line 4"),
    ("fn(leaf).backward(dy)\n    return torch.nn.grad.conv1d", "a function, not the gradient"),
    ("fn(leaf).backward(dy)\n    return fn.bias.grad", "in doubt silent"),
]


@pytest.mark.parametrize(("body", "because"), SILENT)
def test_silence_is_explained(body: str, because: str) -> None:
    text = f"def step(fn, loss, x, dy):\n    leaf = x.detach()\n    {body}\n"
    own = Module("a.py", text, ast.parse(text))
    assert flow(own).leaks == []
    assert because in " ".join(explain_line(own, 4))


def test_a_finding_is_explained() -> None:
    text = "def backward(fn, x, dy):\n    leaf = x.detach()\n    fn(leaf).backward(dy)\n    return leaf.grad\n"
    said = " ".join(explain_line(Module("a.py", text, ast.parse(text)), 4))
    assert "made in line 2" in said and "nothing in the source keeps" in said and "the fix is safe" in said


LEAK = "def backward(fn, x, dy):\n    leaf = x.detach()\n    fn(leaf).backward(dy)\n    return leaf.grad\n"
SCOPE = [
    ("pkg/ops.py", "", True),
    ("tests/test_ops.py", "", False),
    ("pkg/test_ops.py", "", False),
    ("tests/helpers.py", "", False),
    ("/home/me/tests/helpers.py", "import pytest\n", False),
    ("/home/me/tests/checkout/ops.py", "", True),
    ("benchmarks/ops.py", "import timeit\n", False),
    ("benchmarks/checkout/ops.py", "", True),
]


@pytest.mark.parametrize(("path", "head", "speaks"), SCOPE)
def test_tests_and_benchmarks_are_out_of_scope(path: str, head: str, speaks: bool) -> None:
    text = head + LEAK
    assert bool(check(Module(path, text, ast.parse(text)), frozenset({"LT001"}), path).findings) is speaks


def test_code_of_any_kind_is_walked_without_a_crash() -> None:
    """The standard library has no leaves, and every construct of the language."""
    for name in ("argparse", "ast", "contextlib", "dataclasses", "inspect", "typing", "unittest/mock"):
        path = Path(ast.__file__).parent / f"{name}.py"
        own = Module(str(path), path.read_text(), ast.parse(path.read_text()), str(path))
        for function, traits in survey(own).items():
            walker = Interpreter(own, fields=Fields().read)
            walker.budget = 2_000
            with contextlib.suppress(GiveUp):
                walker.walk(function, ClassRef(traits.owner, own) if traits.owner else None)
            assert not walker.events.harvests

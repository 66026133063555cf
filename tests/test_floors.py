"""The house: arrows point down, rooms that must not meet do not, files and functions fit a glance."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).resolve().parent.parent
FLOORS = [
    # first match wins: (prefix of the module, floor)
    ("lifetime.errors", 0),
    ("lifetime.units", 0),
    ("lifetime.files", 0),
    ("lifetime.linter.severity", 1),
    ("lifetime.linter.result", 1),
    ("lifetime.linter.model", 1),
    ("lifetime.heap.model", 1),
    ("lifetime.heap.graph", 1),
    ("lifetime.verify.model", 1),
    ("lifetime.verify.compare", 2),
    ("lifetime.verify.scale", 2),
    ("lifetime.linter", 2),
    ("lifetime.heap", 2),
    ("lifetime.report", 2),
    ("lifetime.rules", 2),
    ("lifetime.tracer", 3),
    ("lifetime.evidence", 3),
    ("lifetime.verify", 3),
    ("lifetime.comment", 3),
    ("lifetime.config", 3),
    ("lifetime.cli", 4),
    ("lifetime.pytest_plugin", 4),
    ("lifetime.flake8_plugin", 4),
    ("lifetime.notebook", 4),
    ("lifetime.__main__", 5),
    ("lifetime", 0),
]
MODELS = {
    "lifetime.linter.severity",
    "lifetime.linter.result",
    "lifetime.linter.model",
    "lifetime.heap.model",
    "lifetime.heap.graph",
    "lifetime.verify.model",
}
TORCH_ROOMS = ("lifetime.heap", "lifetime.tracer")
PURE_HEAP = {
    "accumulate",
    "blame",
    "chosen",
    "cycles",
    "dominators",
    "everyone",
    "fingerprint",
    "graph",
    "growth",
    "hint",
    "judge",
    "known",
    "leak",
    "linger",
    "links",
    "loops",
    "mincut",
    "model",
    "paths",
    "priority",
    "proof",
    "purpose",
    "references",
    "status",
    "trunk",
}
LONGEST_FILE = 300
LONGEST_FUNCTION = 50


def modules() -> dict[str, Path]:
    """Every module of the package by its import name."""
    found = {}
    for top, name in ((REPO / "lifetime", "lifetime"), (REPO / "rules", "lifetime.rules")):
        for path in sorted(top.rglob("*.py")):
            parts = [name, *path.relative_to(top).with_suffix("").parts]
            found[".".join(p for p in parts if p != "__init__")] = path
    return found


MODULES = modules()


def floor(module: str) -> int:
    return next(level for prefix, level in FLOORS if module == prefix or module.startswith(prefix + "."))


def imports(path: Path) -> set[str]:
    """Names of modules that a file imports anywhere; `from a import b` counts as `a.b` where that is a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            children = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(children & MODULES.keys() or {node.module})
    return found


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("module", MODULES)
def test_arrows_point_down(module: str) -> None:
    if module == "lifetime":
        return  # the lazy public face names its homes under TYPE_CHECKING only
    up = [i for i in imports(MODULES[module]) if i.startswith("lifetime.") and floor(i) > floor(module)]
    assert not up, f"{module} (floor {floor(module)}) imports upwards: {up}"


@pytest.mark.parametrize("module", MODULES)
def test_rooms_that_must_not_meet(module: str) -> None:
    seen = imports(MODULES[module])
    own = room(module)
    if own == "lifetime.linter":
        assert not [i for i in seen if room(i) in {"lifetime.heap", "lifetime.report", "lifetime.rules"}]
    if own == "lifetime.heap":
        assert not [i for i in seen if room(i) in {"lifetime.linter", "lifetime.report"}]
    if own == "lifetime.report":
        rooms = {i for i in seen if room(i) in {"lifetime.linter", "lifetime.heap", "lifetime.verify"}}
        assert rooms <= MODELS, f"report knows models only, not {rooms - MODELS}"
    if own == "lifetime.rules":
        rest = [i for i in seen if i.startswith("lifetime.") and room(i) != "lifetime.linter"]
        assert not rest, f"a rule imports lifetime.linter only, not {rest}"
    assert not [i for i in seen if i.startswith("lifetime.rules")], "nothing imports a rule by name"


@pytest.mark.parametrize("module", MODULES)
def test_heavy_libraries_stay_in_their_rooms(module: str) -> None:
    tops = {name.split(".")[0] for name in imports(MODULES[module])}
    if not module.startswith(TORCH_ROOMS):
        assert "torch" not in tops
    if module.startswith("lifetime.heap.") and module.split(".")[2] in PURE_HEAP:
        assert "torch" not in tops and "gc" not in tops, f"{module} is pure"
    if not module.startswith(("lifetime.linter", "lifetime.rules")):
        assert "libcst" not in tops or module.startswith(("lifetime.verify", "lifetime.comment"))
    if module in MODELS:
        assert not tops & {"os", "io", "pathlib", "json", "sys", "torch", "libcst"}


def test_no_cycles() -> None:
    graph = {m: {i for i in imports(p) if i in MODULES and i != m} for m, p in MODULES.items() if m != "lifetime"}
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"import cycle: {' -> '.join((*path, module))}"
        if module not in done:
            for other in graph.get(module, ()):
                walk(other, (*path, module))
            done.add(module)

    for module in graph:
        walk(module, ())


@pytest.mark.parametrize("module", MODULES)
def test_files_and_functions_fit_a_glance(module: str) -> None:
    text = MODULES[module].read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{module}.{node.name} has {length} lines"


def test_packages_are_complete() -> None:
    listed = set(tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    there = {m for m, p in MODULES.items() if p.name == "__init__.py"}
    assert listed == there


def test_a_planted_upward_import_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("from lifetime.cli import main\n")
    assert imports(planted) == {"lifetime.cli"} and floor("lifetime.cli") > floor("lifetime.heap.paths")

"""Which bindings `--step` means, and that wrapping them moves no line."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import pickle
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lifetime.tracer import probe
from lifetime.tracer.mark import mark_step

Run = Callable[[str, str], tuple[int, dict[str, Any]]]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    seen: list[int] = []
    monkeypatch.setattr(probe, "on_step", lambda: seen.append(1))
    yield seen


def run(source: str, qualname: str) -> dict[str, Any]:
    tree = ast.parse(textwrap.dedent(source))
    assert mark_step(tree, qualname)
    names: dict[str, Any] = {"__name__": "marked"}
    exec(compile(tree, "marked.py", "exec"), names)
    return names


CASES = {
    "function": ("step", "def step(): return 1\nfor _ in range(3): assert step() == 1"),
    "decorated": (
        "step",
        "import functools\n@functools.lru_cache\ndef step(n): ...\nfor n in range(3): step(n)\nstep.cache_clear()",
    ),
    "method": ("A.step", "class A:\n    def step(self): return self\na = A()\nfor _ in range(3): assert a.step() is a"),
    "static method": (
        "A.step",
        "class A:\n    @staticmethod\n    def step(x): return x\nfor n in range(3): assert A().step(n) == n",
    ),
    "class method": (
        "A.step",
        "class A:\n    @classmethod\n    def step(cls): return cls\nfor _ in range(3): assert A.step() is A",
    ),
    "nested class": ("A.B.step", "class A:\n    class B:\n        def step(self): ...\nfor _ in range(3): A.B().step()"),
    "local function": ("step", "def main():\n    def step(): ...\n    for _ in range(3): step()\nmain()"),
    "local by its full name": ("main.step", "def main():\n    def step(): ...\n    for _ in range(3): step()\nmain()"),
    "under if": ("step", "if True:\n    def step(): ...\nelse:\n    def step(): ...\nfor _ in range(3): step()"),
    "under try": ("step", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    def step(): ...\nfor _ in range(3): step()"),
    "assigned": ("step", "def f(): ...\nstep = f\nfor _ in range(3): step()"),
    "lambda": ("step", "step = lambda n: n\nassert [step(n) for n in range(3)] == [0, 1, 2]"),
    "partial": ("step", "import functools\nstep = functools.partial(max, 1)\nassert [step(n) for n in range(3)] == [1, 1, 2]"),
    "imported": ("dumps", "from json import dumps\nfor _ in range(3): dumps([])"),
    "module level wins": (
        "step",
        "def other():\n    def step(): ...\n    step()\ndef step(): other()\nfor _ in range(3): step()",
    ),
    "recursive": ("step", "def step(n=2): return step(n - 1) if n else 0\nfor _ in range(3): step()"),
    "wrapped twice": ("step", "def step(): ...\nstep = step\nfor _ in range(3): step()"),
    "private name": (
        "A.__step",
        "class A:\n    def __step(self): ...\n    def run(self): self.__step()\nfor _ in range(3): A().run()",
    ),
    "generator": ("step", "def step(): yield 1\nfor _ in range(3): assert list(step()) == [1]"),
    "annotated": ("step", "step: object = lambda: 1\nfor _ in range(3): step()"),
    "after future": (
        "step",
        "'doc'\nfrom __future__ import annotations\ndef step(x: Unknown = 1): ...\nfor _ in range(3): step()",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_three_calls_are_three_steps(case: str, steps: list[int]) -> None:
    qualname, source = CASES[case]
    run(source, qualname)
    assert len(steps) == 3


def test_a_coroutine_ends_when_it_is_done(steps: list[int]) -> None:
    names = run("import asyncio\nasync def step():\n    await asyncio.sleep(0)\n    return 1", "step")
    assert inspect.iscoroutinefunction(names["step"])
    pending = names["step"]()
    assert not steps
    assert asyncio.run(pending) == 1 and len(steps) == 1


def test_a_step_that_raises_is_none(steps: list[int]) -> None:
    names = run("def step(n):\n    return 1 / n", "step")
    with pytest.raises(ZeroDivisionError):
        names["step"](0)
    names["step"](1)
    assert len(steps) == 1


def test_the_boundary_comes_after_the_locals_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    class Thing: ...

    alive: list[bool] = []
    references: list[Any] = []
    monkeypatch.setattr(probe, "on_step", lambda: alive.append(any(r() for r in references)))
    names = run("def step(thing):\n    inner = make()\n    keep(inner); keep(thing)", "step")
    names["make"], names["keep"] = Thing, lambda x: references.append(weakref.ref(x))
    names["step"](Thing())
    assert alive == [False]


def test_lines_and_source_stay() -> None:
    source = textwrap.dedent(
        """
        def step():
            x = 1
            return where()

        y = where()
        """
    )
    names: dict[str, Any] = {"where": lambda: inspect.currentframe().f_back.f_lineno}  # type: ignore[union-attr]
    tree = ast.parse(source)
    assert mark_step(tree, "step") == 1
    exec(compile(tree, "x.py", "exec"), names)
    assert (names["step"](), names["y"], inspect.unwrap(names["step"]).__code__.co_firstlineno) == (4, 6, 2)


def step_here() -> int:
    return 1


def test_a_wrapped_function_still_pickles_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = probe.boundary(step_here)
    monkeypatch.setitem(globals(), "step_here", shell)
    assert pickle.loads(pickle.dumps(shell)) is shell
    assert (shell.__name__, shell.__qualname__, inspect.signature(shell)) == (
        "step_here",
        "step_here",
        inspect.signature(step_here),
    )


def test_what_is_no_step_stays_as_it_is() -> None:
    assert probe.boundary(int) is int and probe.boundary(3) == 3
    assert probe.boundary(functools.partial(int, "3"))() == 3


def test_nothing_is_marked_where_nothing_matches() -> None:
    tree = ast.parse("class A:\n    def other(self): ...\ndef f(): ...")
    before = ast.dump(tree)
    assert mark_step(tree, "A.step") == mark_step(tree, "B.step") == mark_step(tree, "step") == 0
    assert ast.dump(tree) == before

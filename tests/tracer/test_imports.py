"""The import hook: acts after an import, whoever asks first, and leaves no trace of itself."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from lifetime.tracer.imports import Hook


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    (tmp_path / "hooked_module.py").write_text("READY = True\n")
    (tmp_path / "failing_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    hook = Hook()
    hook.install()
    yield hook
    hook.remove()
    sys.modules.pop("hooked_module", None)
    assert hook not in sys.meta_path


def test_it_acts_once_after_the_module_is_ready(hook: Hook) -> None:
    seen: list[bool] = []
    hook.after("hooked_module", lambda: seen.append(sys.modules["hooked_module"].READY))
    module = importlib.import_module("hooked_module")
    assert seen == [True]
    assert type(module.__loader__) is SourceFileLoader and module.__spec__ is not None
    assert type(module.__spec__.loader) is SourceFileLoader
    importlib.reload(module)
    assert seen == [True]


def test_a_spec_that_is_only_asked_for_takes_nothing_away(hook: Hook) -> None:
    seen: list[int] = []
    hook.after("hooked_module", lambda: seen.append(1))
    spec = importlib.util.find_spec("hooked_module")
    assert spec is not None and spec.loader is not None and not seen
    assert spec.loader.get_source("hooked_module") == "READY = True\n"  # type: ignore[attr-defined]
    importlib.import_module("hooked_module")
    assert seen == [1]


def test_it_acts_at_once_on_what_is_there(hook: Hook) -> None:
    seen: list[int] = []
    hook.after("json", lambda: seen.append(1))
    assert seen == [1]


def test_an_import_that_fails_fails_as_before(hook: Hook) -> None:
    seen: list[int] = []
    hook.after("failing_module", lambda: seen.append(1))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("failing_module")
    assert not seen and "failing_module" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module_at_all'"):
        importlib.import_module("no_such_module_at_all")


def test_what_the_rewriter_imports_is_its_own_business(tmp_path: Path, hook: Hook) -> None:
    asked: list[str] = []

    def rewriter(name: str, file: str) -> None:
        asked.append(name)
        (tmp_path / "inner_module.py").write_text("")
        importlib.import_module("inner_module")

    hook.rewriter = rewriter
    try:
        importlib.import_module("hooked_module")
    finally:
        sys.modules.pop("inner_module", None)
    assert asked == ["hooked_module"]

"""A clean file is checked without the heavy parts: pre-commit users pay for every import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.linter.sources import SECOND_ORDER

HEAVY = {
    "torch",
    "libcst",
    "ast",
    "dataclasses",
    "inspect",
    "multiprocessing",
    "concurrent",
    "tempfile",
    "json",
    "lifetime.rules",
}
SHOW = "import sys; from lifetime.cli import main; code = main(sys.argv[1:]); print(code, *sys.modules)"


def modules(folder: Path, *arguments: str) -> tuple[int, set[str]]:
    """Exit code, and what was imported at the end."""
    done = subprocess.run([sys.executable, "-c", SHOW, "lint", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    code, *names = done.stdout.splitlines()[-1].split()
    return int(code), set(names)


def test_a_clean_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n\n\ndef f(x):\n    return x.grad\n")
    code, names = modules(tmp_path, "a.py")
    assert code == 0 and not names & HEAVY


def test_a_clean_folder_with_configuration(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").write_text('[tool.lifetime]\nexclude = ["gen"]\n')
    code, names = modules(tmp_path, ".")
    assert code == 0 and not names & HEAVY


def test_findings_need_no_torch(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    code, names = modules(tmp_path, "--no-cache", "a.py")
    assert code == 1 and "torch" not in names


def test_what_is_cached_needs_no_rule(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SECOND_ORDER)
    modules(tmp_path, "a.py")
    code, names = modules(tmp_path, "a.py")
    assert code == 1 and not names & {"torch", "libcst", "lifetime.rules"}

"""The hooks under the real pre-commit framework, with this checkout as their source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.linter.sources import HARVEST, SECOND_ORDER

REPO = Path(__file__).resolve().parent.parent
UNUSED = "x = 1  # lifetime: keep[LT001] old\n"
CONFIG = """\
repos:
  - repo: {repo}
    rev: {rev}
    hooks:
      - id: {hook}
"""

pytestmark = pytest.mark.slow


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps its environments: one for all tests of this file."""
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A repository of somebody who uses the hooks."""
    run("git", "init", "-q", cwd=tmp_path)
    run("git", "config", "user.email", "a@example.org", cwd=tmp_path)
    run("git", "config", "user.name", "A", cwd=tmp_path)
    return tmp_path


def configure(scratch: Path, hook: str) -> None:
    rev = run("git", "rev-parse", "HEAD", cwd=REPO).stdout.strip()
    (scratch / ".pre-commit-config.yaml").write_text(CONFIG.format(repo=REPO, rev=rev, hook=hook))
    run("git", "add", "-A", cwd=scratch)


def pre_commit(scratch: Path, home: Path) -> subprocess.CompletedProcess[str]:
    run("git", "add", "-A", cwd=scratch)
    return run(sys.executable, "-m", "pre_commit", "run", cwd=scratch, PRE_COMMIT_HOME=str(home))


def test_a_bad_commit_fails_and_a_good_one_passes(scratch: Path, home: Path) -> None:
    configure(scratch, "lifetime-lint")
    (scratch / "a.py").write_text(HARVEST)
    (scratch / "notes.txt").write_text(SECOND_ORDER)
    bad = pre_commit(scratch, home)
    assert bad.returncode == 1 and "a.py:12:13: LT001" in bad.stdout and "notes.txt" not in bad.stdout
    (scratch / "a.py").write_text("def f(x):\n    return x\n")
    good = pre_commit(scratch, home)
    assert good.returncode == 0 and "Passed" in good.stdout


def test_only_what_changed_is_checked_and_excludes_hold(scratch: Path, home: Path) -> None:
    configure(scratch, "lifetime-lint")
    (scratch / "gen.py").write_text(SECOND_ORDER)
    (scratch / "pyproject.toml").write_text('[tool.lifetime]\nexclude = ["gen.py"]\n')
    assert pre_commit(scratch, home).returncode == 0


def test_the_fix_hook_fixes_and_fails_once(scratch: Path, home: Path) -> None:
    configure(scratch, "lifetime-fix")
    (scratch / "a.py").write_text(UNUSED)
    first = pre_commit(scratch, home)
    assert first.returncode == 1 and (scratch / "a.py").read_text() == "x = 1\n"
    assert pre_commit(scratch, home).returncode == 0


def test_its_environment_is_free_of_torch(home: Path) -> None:
    pythons = list(home.glob("repo*/py_env-*/bin/python"))
    assert pythons, "the tests above made one"
    for python in pythons:
        installed = run(str(python), "-m", "pip", "list", "--format", "freeze", cwd=home).stdout.lower()
        assert "torch-lifetime" in installed and "libcst" in installed and "\ntorch==" not in installed

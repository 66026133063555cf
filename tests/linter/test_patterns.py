"""Patterns mean what they mean to git: git itself is the judge."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lifetime.linter.patterns import patterns

PATTERNS = [
    "*.py",
    "/a.py",
    "a/",
    "a/b",
    "**/b",
    "a/**",
    "a/**/b",
    "!x.py",
    "[ab].py",
    "[!a].py",
    "?.py",
    "\\!x.py",
    "\\#y.py",
    "*",
    "a*c",
    "[[:digit:]].py",
    "[]].py",
    "[^/]x",
    "**",
    "***/b",
    "a/**b",
    "b**/c",
    "/",
    "//",
    "!",
    "a//b",
    "[a",
    "x\\",
    "[a-c]x.py",
    "sub/*.py",
    "/*",
    "*/",
    "!*/",
    "a.b",
    "[\\]]x",
    "**/*.py",
    "/**/b.py",
    "a/*/b",
    "*.py[cod]",
    "#x.py",
    "foo bar",
    "a\\ ",
    "trailing ",
    "",
]
PATHS = [
    "a.py",
    "x.py",
    "a/b",
    "a/x/b",
    "b",
    "c/b",
    "a/b/c",
    "!x.py",
    "#y.py",
    "1.py",
    "].py",
    "ax",
    "sub/q.py",
    "sub/d/q.py",
    "cx.py",
    "ab",
    "axxb",
    "aaac",
    "b/c",
    "bb/c",
    "[a",
    "]x",
    "s/t/u/b.py",
    "a.pyc",
    "a.b",
    "axb",
    "a/c/b/d",
    "trailing",
    "#x.py",
    "a ",
    "foo bar",
]


def by_git(folder: Path, pattern: str) -> dict[str, bool]:
    """Which paths git ignores by one pattern; those it refuses to judge are left out."""
    (folder / ".gitignore").write_text(pattern + "\n")
    command = ["git", "check-ignore", "--no-index", "-z", "--stdin", "-v", "-n"]
    done = subprocess.run(command, cwd=folder, input="\0".join(PATHS) + "\0", capture_output=True, text=True)
    fields = done.stdout.split("\0")
    rows = [fields[n : n + 4] for n in range(0, len(fields) - 3, 4)]
    return {path: bool(matched) and not matched.startswith("!") for _, _, matched, path in rows}


@pytest.mark.skipif(not shutil.which("git"), reason="git is the judge")
def test_every_pattern_means_what_it_means_to_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for pattern in PATTERNS:
        judged = by_git(tmp_path, pattern)
        assert judged, "git answered nothing"
        ours = {path: patterns([pattern]).covers(path) for path in judged}
        assert ours == judged, pattern


def test_the_last_match_wins() -> None:
    found = patterns(["*.py", "!keep.py", "keep.py"])
    assert found.verdict("keep.py", False) is True
    assert patterns(["*.py", "!keep.py"]).verdict("keep.py", False) is False
    assert found.verdict("other.txt", False) is None


def test_a_folder_pattern_spares_a_file_of_that_name() -> None:
    assert patterns(["build/"]).verdict("build", True) is True
    assert patterns(["build/"]).verdict("build", False) is None
    assert patterns(["build/"]).covers("build/lib/a.py")

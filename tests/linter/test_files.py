"""Which files are found, which are skipped and why, and what cannot be looked at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lifetime.linter import files, git
from lifetime.linter.places import Found
from lifetime.linter.settings import Settings, path_patterns


def tree(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def find(*paths: str, settings: Settings = Settings()) -> Found:  # noqa: B008 a named tuple
    return files.find(paths or ["."], lambda folder: settings)


def shown(found: Found) -> list[str]:
    return [target.path for target in found.targets]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def test_python_files_of_a_tree_sorted(root: Path) -> None:
    tree(root, "b.py", "a/z.py", "a/stub.pyi", "nb.ipynb", "notes.txt", "__pycache__/x.py", ".git/hook.py", "node_modules/n.py")
    assert shown(find()) == ["a/stub.pyi", "a/z.py", "b.py", "nb.ipynb"]


def test_ignore_files_nest_negate_and_anchor(root: Path) -> None:
    tree(root, "build/a.py", "src/build/b.py", "src/gen_a.py", "src/gen_keep.py", "src/sub/gen_b.py", "top.py", "src/top.py")
    (root / ".gitignore").write_text("/build/\ngen_*.py\n/top.py\n")
    (root / "src" / ".gitignore").write_text("!gen_keep.py\n")
    found = find()
    assert shown(found) == ["src/build/b.py", "src/gen_keep.py", "src/top.py"]
    assert found.skipped == {"git-ignored folder": 1, "git-ignored file": 3}


def test_rules_from_above_apply_in_a_folder_below(root: Path) -> None:
    tree(root, ".git/x", "src/deep/gen.py", "src/deep/own.py")
    (root / ".gitignore").write_text("gen.py\n")
    (root / "src" / ".gitignore").write_text("deep/own.py\n")
    assert shown(find("src/deep")) == []


def test_what_git_tracks_is_not_ignored(root: Path) -> None:
    tree(root, "gen/tracked.py", "gen/other.py")
    (root / ".gitignore").write_text("gen/\n")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "-f", "gen/tracked.py"], check=True)
    for version in ("2", "4"):
        subprocess.run(["git", "update-index", "--index-version", version], check=True)
        assert shown(find()) == ["gen/other.py", "gen/tracked.py"]


def test_a_repository_within_a_repository_starts_anew(root: Path) -> None:
    tree(root, ".git/x", "sub/.git/x", "sub/a.py", "a.py")
    (root / ".gitignore").write_text("a.py\n")
    assert shown(find()) == ["sub/a.py"]


def test_the_users_own_patterns(root: Path) -> None:
    tree(root, ".git/info/x", "mine.py", "local.py", "a.py", "home/.config/git/x")
    (root / "home/.config/git/ignore").write_text("mine.py\n")
    (root / ".git/info/exclude").write_text("local.py\n")
    assert shown(find()) == ["a.py"]
    (root / "home/.gitconfig").write_text('[core]\n\texcludesFile = "~/elsewhere"\n')
    (root / "home/elsewhere").write_text("a.py\n")
    assert shown(find()) == ["mine.py"]


def test_a_named_file_is_always_there(root: Path) -> None:
    tree(root, "gen.py", "script")
    (root / ".gitignore").write_text("gen.py\n")
    excluding = Settings(exclude=(path_patterns(str(root), ["gen.py"]),))
    assert shown(find("gen.py", "script", settings=excluding)) == ["gen.py", "script"]
    forced = find("gen.py", "script", settings=excluding._replace(force_exclude=True))
    assert shown(forced) == ["script"] and forced.skipped == {"excluded file": 1}


def test_excludes_are_skipped_and_counted(root: Path) -> None:
    tree(root, "third/a.py", "own/third/b.py", "own/c_pb2.py", "own/d.py", "env/pyvenv.cfg", "env/lib/x.py")
    found = find(settings=Settings(exclude=(path_patterns(str(root), ["/third", "*_pb2.py"]),)))
    assert shown(found) == ["own/d.py", "own/third/b.py"]
    assert found.skipped == {"excluded folder": 1, "excluded file": 1, "virtual environment": 1}


def test_links(root: Path) -> None:
    tree(root, "real/a.py", "outside.txt")
    (root / "real/again.py").symlink_to("a.py")
    (root / "real/gone.py").symlink_to("nowhere")
    (root / "real/up").symlink_to("..")
    (root / "real/self.py").symlink_to("self.py")
    (root / "other").symlink_to("real")
    found = find()
    assert shown(found) == ["real/a.py"]
    assert found.skipped == {"linked file": 1, "dangling link": 1, "linked folder": 1}
    assert [(p.path, p.message) for p in found.problems] == [
        ("real/self.py", "cannot be read: too many levels of symbolic links"),
        ("real/up", "is a symbolic link to a folder that holds it: not followed"),
    ]


def test_what_cannot_be_looked_at_is_a_problem(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(root, "a.py", "closed/b.py")
    os.mkfifo(root / "pipe.py")
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if folder.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find(".", "pipe.py", "missing.py")
    assert shown(found) == ["a.py"]
    assert {p.path: p.message for p in found.problems} == {
        "pipe.py": "is not a regular file",
        "missing.py": "cannot be read: no such file or directory",
        "closed": "cannot be read: permission denied",
    }


def test_paths_are_relative_inside_and_absolute_outside(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    tree(elsewhere, "b.py")
    tree(root, "a.py")
    assert shown(find(str(root / "a.py"), str(elsewhere / "b.py"))) == [f"{elsewhere}/b.py", "a.py"]


def test_a_file_is_checked_once_however_often_it_is_named(root: Path) -> None:
    tree(root, "d/a.py")
    assert shown(find(".", "d", "d/a.py", str(root))) == ["d/a.py"]


def test_a_damaged_index_counts_as_none() -> None:
    with pytest.raises(ValueError):
        git.index_paths(b"DIRC\0\0\0\x09\0\0\0\x01")
    with pytest.raises((ValueError, IndexError)):
        git.index_paths(b"DIRC\0\0\0\x02\0\0\0\x05short")

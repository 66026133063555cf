"""Files written whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from lifetime.errors import LifetimeError
from lifetime.files import write_whole


def test_an_old_file_keeps_its_permissions_and_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "a", tmp_path / "b"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, "new")
    assert (target.read_text(), target.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_pipe_stays_a_pipe_and_its_reader_gets_the_text(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "text")
    reader.join(10)
    assert read == ["text"] and pipe.is_fifo()


def test_nothing_is_left_behind_where_writing_fails(tmp_path: Path) -> None:
    for target in (tmp_path / "none" / "a", tmp_path):
        with pytest.raises(LifetimeError, match="cannot write"):
            write_whole(target, "text")
    assert list(tmp_path.iterdir()) == []

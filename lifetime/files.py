"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from lifetime.errors import LifetimeError, UsageError


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep


HERE = _working_directory()
"""Where the process was started; a traced program may go elsewhere, or remove it."""

_HELP = {
    errno.EFBIG: "the limit on the size of files (ulimit -f) is too low",
    errno.ENOSPC: "make room on that file system",
    errno.EDQUOT: "make room on that file system",
}


def writable(path: Path | str, may_be_folder: bool = False) -> str:
    """`path`, absolute (a program may change the folder), where a file can be: to be asked before the work is done.

    Raises:
        UsageError: its folder does not exist, or it is itself a folder.
    """
    absolute = os.path.abspath(path)
    if not Path(absolute).parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {Path(path).parent}")
    if Path(absolute).is_dir() and not may_be_folder:
        raise UsageError(f"cannot write {path}: it is a folder", f"name a file in it, as in {Path(path) / 'report.json'}")
    return absolute


def write_whole(path: Path | str, data: str | bytes) -> None:
    """Write `data` to `path` through a temporary file in the same folder and a rename.

    A file that exists keeps its permission bits; a symbolic link is followed. What is no regular file (a terminal, a pipe,
    `/dev/null`) is written to as it is.

    Raises:
        LifetimeError: the target cannot be written; nothing is left behind.
    """
    target = Path(os.path.realpath(path))
    content = data.encode() if isinstance(data, str) else data
    temporary = ""
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        help = _HELP.get(error.errno or 0, "choose a folder you may write to")
        raise LifetimeError(f"cannot write {path}: {error.strerror or error}", help) from None


def _mode(target: Path) -> int:
    try:
        return target.stat().st_mode & 0o7777
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask

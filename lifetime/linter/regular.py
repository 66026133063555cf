"""Files read whole, and only regular ones: reading a pipe or a device would wait for somebody to write."""

from __future__ import annotations

import os
import stat
from errno import EINVAL

NO_REGULAR_FILE = "is not a regular file"


def opened(file: str, flags: int) -> int:
    """An opener (for `open`) that never waits.

    Raises:
        OSError: there is no such file, or it is no regular one.
    """
    handle = os.open(file, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, NO_REGULAR_FILE, file)
    return handle

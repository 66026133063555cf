"""How far things are, for people who wait: on a terminal only, after a moment only, and gone without a trace.

rich draws where it is installed; an install for `lifetime lint` alone has a plain counter. Nothing is imported before there is
something to show: most runs are over by then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

PATIENCE_S, EVERY_S = 0.7, 0.1
ERASE = "\r\x1b[K"
Advance = Callable[[int, int], None]
"""Told how many parts are done, and of how many."""


@contextmanager
def progress(what: str, stream: TextIO) -> Iterator[Advance]:
    """A bar on `stream`, drawn as often as it is told something."""
    bar = _Bar(what, stream)
    try:
        yield bar.advance if _is_for_people(stream) else lambda done, total: None
    finally:
        bar.stop()


class _Bar:
    """Draws from the thread that works: a second thread would keep the linter from forking its workers."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self.what, self.stream = what, stream
        self.next_s = time.monotonic() + PATIENCE_S
        self.draw: Advance | None = None
        self.stop: Callable[[], None] = lambda: None

    def advance(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self.next_s:
            self.next_s = now + EVERY_S
            self.draw = self.draw or self._rich() or self._plain()
            self.draw(done, total)

    def _rich(self) -> Advance | None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        except ImportError:
            return None
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=Console(file=self.stream),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,  # what is printed meanwhile is not ours to move
            redirect_stderr=False,
        )
        task = bar.add_task(self.what, total=None)
        bar.start()
        self.stop = bar.stop

        def draw(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        return draw

    def _plain(self) -> Advance:
        self.stop = lambda: _write(self.stream, ERASE)
        return lambda done, total: _write(self.stream, f"{ERASE}{self.what}: {done:,} of {total:,}")


class Waiting:
    """From `with` to its end, or to the first `stop`, a sentence on standard error that something goes on."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Waiting:
        stream = sys.stderr
        if self._thread is None and not self._over.is_set() and _is_for_people(stream):
            self._thread = threading.Thread(target=self._show, args=(stream,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """What is shown is gone when this returns."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _show(self, stream: TextIO) -> None:
        if self._over.wait(PATIENCE_S):
            return
        try:
            from rich.console import Console
        except ImportError:
            _write(stream, f"{self.what} ...")
            self._over.wait()
            _write(stream, ERASE)
            return
        with suppress(OSError, ValueError), Console(file=stream).status(self.what):
            self._over.wait()


def _is_for_people(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # closed, or no stream at all
        return False


def _write(stream: TextIO, text: str) -> None:
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()

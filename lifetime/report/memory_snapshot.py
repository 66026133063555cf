"""Allocation stacks out of torch's memory snapshots (`torch.cuda.memory._dump_snapshot`), found by address.

Source: torch 2.13, torch/csrc/cuda/memory_snapshot.cpp: segments of blocks, each with the frames of its allocation.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lifetime.errors import ReportError
from lifetime.report.clean import middle_out, one_line
from lifetime.report.plain_pickle import plain_pickle
from lifetime.report.words import TORCH

LARGEST_BYTES = 2 << 30
MOST_FRAMES = 200
MOST_BLOCKS = 5_000_000
LIVE = {"active_allocated", "active_awaiting_free", "active_pending_free"}
_NATIVE = re.compile(r"^(?:\?\?)?$|\.(?:c|cc|cpp|cxx|cu|h|hpp|so)(?:\.\d+)*$")
"""File names of frames in C++; empty where nobody knows the file."""


@dataclass(frozen=True)
class Frame:
    path: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """`path:line in function`; of a frame in C++ the function alone."""
        place = f"{middle_out(self.path, 120)}:{self.line} in " if not self.is_native else ""
        return place + middle_out(self.function, 100)

    @property
    def is_native(self) -> bool:
        return self.line <= 0 or _NATIVE.search(self.path) is not None


@dataclass(frozen=True)
class Block:
    """A live allocation; `frames` from the innermost out, empty where the history was not recorded. `asked` is the size
    that was asked for, which `size` rounds up; 0 where the snapshot does not say."""

    address: int
    size: int
    frames: tuple[Frame, ...]
    asked: int = 0

    @property
    def made_at(self) -> str | None:
        """The innermost frame outside torch, as `path:line in function`."""
        return next((frame.text for frame in self.frames if not frame.is_native and not TORCH.search(frame.path)), None)

    @property
    def stack(self) -> tuple[str, ...]:
        """The calls in Python; those in C++ where there is no other: the engine that runs a backward has no Python frame."""
        return tuple(frame.text for frame in self.frames if not frame.is_native) or tuple(frame.text for frame in self.frames)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether a storage of `nbytes` at `address` can be what was allocated here: else the block was given out anew since."""
        if self.asked and address == self.address:
            return nbytes == self.asked
        return address + nbytes <= self.address + self.size


class _Entry(NamedTuple):
    """A block as the snapshot has it; its frames are read when it is asked for."""

    address: int
    size: int
    asked: int
    frames: Sequence[Any]


class Allocations:
    """The live blocks of a snapshot, by address."""

    def __init__(self, entries: Iterable[_Entry], source: str) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.address)
        self._starts = [entry.address for entry in self._entries]
        self._source = source

    def at(self, address: int) -> Block | None:
        """The block that `address` lies in: a view's data pointer need not be the start of its storage.

        Raises:
            ReportError: its stack is none.
        """
        found = bisect.bisect_right(self._starts, address) - 1
        if found < 0:
            return None
        entry = self._entries[found]
        if address >= entry.address + max(entry.size, 1):
            return None
        return Block(entry.address, entry.size, tuple(_frames(entry.frames, self._source)), entry.asked)


def read_allocations(path: Path | str) -> Allocations:
    """The live allocations in the snapshot file `path`.

    Raises:
        ReportError: the file cannot be read, is no pickle of plain containers, or is no memory snapshot.
    """
    try:
        if Path(path).stat().st_size > LARGEST_BYTES:
            raise ReportError(f"{path} is larger than {LARGEST_BYTES >> 30} GiB")
        data = Path(path).read_bytes()
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from None
    return allocations(plain_pickle(data, str(path)), str(path))


def allocations(snapshot: Any, source: str = "snapshot") -> Allocations:
    """The live blocks of an unpickled snapshot.

    Raises:
        ReportError: the shape is not that of a memory snapshot.
    """
    segments = snapshot.get("segments") if isinstance(snapshot, dict) else snapshot
    if not isinstance(segments, list):
        raise ReportError(f"{source} is not a memory snapshot: no segments", "torch.cuda.memory._dump_snapshot(FILE) writes one")
    return Allocations(_live((entry for segment in segments for entry in _entries(segment, source)), source), source)


def _live(entries: Iterable[_Entry | None], source: str) -> Iterator[_Entry]:
    """Those that are; a few bytes of pickle can name one list a million times, so there is an end."""
    for number, entry in enumerate(entries):
        if number == MOST_BLOCKS:
            raise ReportError(f"{source} is not a memory snapshot: more than {MOST_BLOCKS:,} blocks")
        if entry is not None:
            yield entry


def _entries(segment: Any, source: str) -> Iterator[_Entry | None]:
    """The blocks of a segment; None for one that is free."""
    address = _number(_mapping(segment, source).get("address"), source)
    for each in _list(segment.get("blocks", []), source):
        block = _mapping(each, source)
        size = _number(block.get("size"), source)
        # Blocks carry their address since torch 2.1; before, they follow each other without a hole.
        start = _number(block.get("address", address), source)
        state = block.get("state")
        is_live = isinstance(state, str) and state in LIVE
        asked, frames = _number(block.get("requested_size", 0), source), _list(_stack(block), source)
        yield _Entry(start, size, asked, frames) if is_live else None
        address = start + size


def _stack(block: Mapping[str, Any]) -> Any:
    """The frames of the block, which old snapshots keep in its history."""
    history = block.get("history")
    newest = history[0] if isinstance(history, list) and history and isinstance(history[0], dict) else {}
    return block.get("frames") or newest.get("frames") or []


def _frames(frames: Sequence[Any], source: str) -> Iterator[Frame]:
    for each in frames[:MOST_FRAMES]:
        frame = _mapping(each, source)
        name, path = frame.get("name", ""), frame.get("filename", "")
        if isinstance(name, str) and isinstance(path, str):
            yield Frame(path, _number(frame.get("line", 0), source), name)


def _mapping(value: Any, source: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ReportError(f"{source} is not a memory snapshot: {type(value).__name__} where a dict belongs")
    return value


def _list(value: Any, source: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ReportError(f"{source} is not a memory snapshot: {type(value).__name__} where a list belongs")
    return value


def _number(value: Any, source: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ReportError(f"{source} is not a memory snapshot: {one_line(repr(value), 40)} where a number belongs")
    return value

"""Allocation stacks out of torch's memory snapshots (`torch.cuda.memory._dump_snapshot`), found by address.

A snapshot is a pickle, and a pickle can run code. This reader admits dicts, lists, tuples, strings and numbers: a pickle that
names anything to import or to call is refused before it does so. (A file made to waste time or memory still can: C reads it.)

Source: torch 2.13, torch/csrc/cuda/memory_snapshot.cpp: segments of blocks, each with the frames of its allocation.
"""

from __future__ import annotations

import bisect
import io
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lifetime.errors import ReportError
from lifetime.report.clean import middle_out, one_line

LARGEST_BYTES = 2 << 30
MOST_FRAMES = 200
LIVE = {"active_allocated", "active_awaiting_free", "active_pending_free"}
_LIBRARY = re.compile(
    r"<frozen|<string>|(?:^|[\\/])torch[\\/](?:_|nn|autograd|amp|cuda|distributed|functional|fx|library|optim|overrides|utils)"
)
_NATIVE = re.compile(r"^(?:\?\?)?$|\.(?:c|cc|cpp|cxx|cu|h|hpp|so)(?:\.\d+)*$")
"""File names of frames in C++; empty where nobody knows the file."""


@dataclass(frozen=True)
class Frame:
    path: str
    line: int
    function: str

    def __str__(self) -> str:
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
        return next((str(frame) for frame in self.frames if not frame.is_native and not _LIBRARY.search(frame.path)), None)

    @property
    def stack(self) -> tuple[str, ...]:
        """The calls in Python; those in C++ where there is no other: the engine that runs a backward has no Python frame."""
        return tuple(str(frame) for frame in self.frames if not frame.is_native) or tuple(map(str, self.frames))

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether a storage of `nbytes` at `address` can be what was allocated here: else the block was given out anew since."""
        if self.asked and address == self.address:
            return nbytes == self.asked
        return address + nbytes <= self.address + self.size


@dataclass(frozen=True)
class Allocations:
    """Live blocks in the order of their addresses."""

    blocks: tuple[Block, ...]
    starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(block.address for block in self.blocks))

    def at(self, address: int) -> Block | None:
        """The block that `address` lies in: a view's data pointer need not be the start of its storage."""
        found = bisect.bisect_right(self.starts, address) - 1
        if found < 0 or address >= self.blocks[found].address + max(self.blocks[found].size, 1):
            return None
        return self.blocks[found]


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


def plain_pickle(data: bytes, source: str = "snapshot") -> Any:
    """The plain value in a pickle.

    Raises:
        ReportError: it asks for an import, a call or a persistent object, or is damaged.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except pickle.UnpicklingError as error:
        raise ReportError(f"{source} is not a pickle of plain containers: {one_line(str(error))}") from None
    except Exception as error:
        # A damaged pickle raises whatever its bytes happen to ask for: EOFError, ValueError, KeyError, MemoryError, ...
        raise ReportError(f"{source} is not a pickle: {type(error).__name__}") from None


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it names a persistent object")


def allocations(snapshot: Any, source: str = "snapshot") -> Allocations:
    """The live blocks of an unpickled snapshot.

    Raises:
        ReportError: the shape is not that of a memory snapshot.
    """
    segments = snapshot.get("segments") if isinstance(snapshot, dict) else snapshot
    if not isinstance(segments, list):
        raise ReportError(f"{source} is not a memory snapshot: no segments", "torch.cuda.memory._dump_snapshot(FILE) writes one")
    found = [block for segment in segments for block in _blocks(segment, source)]
    return Allocations(tuple(sorted(found, key=lambda block: block.address)))


def _blocks(segment: Any, source: str) -> Iterator[Block]:
    address = _number(_mapping(segment, source).get("address"), source)
    for entry in _list(segment.get("blocks", []), source):
        block = _mapping(entry, source)
        size = _number(block.get("size"), source)
        # Blocks carry their address since torch 2.1; before, they follow each other without a hole.
        start = _number(block.get("address", address), source)
        if block.get("state") in LIVE:
            asked = _number(block.get("requested_size", 0), source)
            yield Block(start, size, tuple(_frames(block, source)), asked)
        address = start + size


def _frames(block: Mapping[str, Any], source: str) -> Iterator[Frame]:
    history = block.get("history")
    newest = history[0] if isinstance(history, list) and history and isinstance(history[0], dict) else {}
    for entry in _list(block.get("frames") or newest.get("frames") or [], source)[:MOST_FRAMES]:
        frame = _mapping(entry, source)
        name, path = frame.get("name", ""), frame.get("filename", "")
        if isinstance(name, str) and isinstance(path, str):
            yield Frame(path, _number(frame.get("line", 0), source), name)


def _mapping(value: Any, source: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ReportError(f"{source} is not a memory snapshot: a {type(value).__name__} where a dict belongs")
    return value


def _list(value: Any, source: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ReportError(f"{source} is not a memory snapshot: a {type(value).__name__} where a list belongs")
    return value


def _number(value: Any, source: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ReportError(f"{source} is not a memory snapshot: {one_line(repr(value), 40)} where a number belongs")
    return value

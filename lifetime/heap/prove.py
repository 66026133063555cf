"""The prover: a clean copy of the program that cuts references in copies of itself, one copy an attempt, and counts the dead."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from lifetime.heap import calibration, cut, differential, fence, peek
from lifetime.heap.cut import Hop, Reference
from lifetime.heap.deaths import Deaths
from lifetime.heap.fork import DEADLINE, Child, ChildError, fork
from lifetime.heap.graph import CutOutcome, ObjectId, StorageId

ATTEMPT_S = 5.0
MOST_HUNG = 2
"""After so many attempts that hung the others are not tried: they would use up the time of the whole look."""
FINALIZERS_S = 1.0
"""How long finalizers may block in an attempt before they are interrupted."""
_HEAD = 8


@dataclass(frozen=True)
class Attempt:
    """References to cut together. `collect`: also collect garbage afterwards, for what hangs behind a cycle below a root.
    `release`: an owner in C++ to be emptied too, by its name in `differential`."""

    references: tuple[Reference, ...]
    collect: bool
    release: str = ""


@dataclass(frozen=True)
class Release:
    """An owner in C++ to be emptied, by its name in `differential`."""

    owner: str


@dataclass(frozen=True)
class Count:
    """An object to be counted: where to find it in a clean copy, and whether the copy has a wrapper for it already."""

    anchor: ObjectId
    path: tuple[Hop, ...]
    is_new: bool


@dataclass(frozen=True)
class Counted:
    """What a clean copy counts: references to the wrapper (0 where there is none), to the TensorImpl (0 for a bare storage), to the
    storage. `has_native`: C++ owns what the wrapper stands for, and so the wrapper too."""

    wrapper: int
    tensor: int
    storage: int
    is_tensor: bool
    has_native: bool


class Prover:
    """A child that waits for attempts. Fork it before anything else touches the heap."""

    def __init__(self, deaths: Deaths, deadline_s: float) -> None:
        self._commands, theirs = _pipe()
        answers_read, answers_write = _pipe(reverse=True)
        self._answers = answers_read
        self._hung = 0
        self._child: Child[None] = fork(
            lambda: _serve(theirs, answers_write, deaths), deadline_s=deadline_s, keep={theirs, answers_write}
        )
        os.close(theirs)
        os.close(answers_write)

    def attempt(self, references: Sequence[Reference], collect: bool, release: str = "") -> CutOutcome:
        """What died when the references were cut."""
        if self._hung >= MOST_HUNG:
            return CutOutcome(frozenset(), 0, "earlier attempts hung until their deadline")
        outcome = self._ask(Attempt(tuple(references), collect, release))
        self._hung += isinstance(outcome, str) and outcome.startswith(DEADLINE)
        return outcome if isinstance(outcome, CutOutcome) else CutOutcome(frozenset(), 0, str(outcome))

    def release(self, owner: str) -> frozenset[StorageId]:
        """The storages that die when that owner lets go."""
        outcome = self._ask(Release(owner))
        return outcome.died if isinstance(outcome, CutOutcome) else frozenset()

    def count(self, wanted: Sequence[Count]) -> list[Counted | str]:
        """The counts of each, or why there is none."""
        answer = self._ask(tuple(wanted))
        return answer if isinstance(answer, list) else [str(answer)] * len(wanted)

    def end(self) -> None:
        for descriptor in (self._commands, self._answers):
            with suppress(OSError):
                os.close(descriptor)
        self._child.end()

    def _ask(self, command: object) -> Any:
        try:
            _send(self._commands, command)
            return _receive(self._answers)
        except (OSError, EOFError) as error:
            return f"the prover is gone: {error}"


def _pipe(reverse: bool = False) -> tuple[int, int]:
    """(ours, theirs): ours writes, or reads with `reverse`."""
    reading, writing = os.pipe()
    return (reading, writing) if reverse else (writing, reading)


def _serve(commands: int, answers: int, deaths: Deaths) -> None:
    while True:
        try:
            command = _receive(commands)
        except (OSError, EOFError):
            return
        try:
            answer = fork(partial(_answer, command, deaths), deadline_s=ATTEMPT_S, sealed=True).wait()
        except ChildError as error:
            answer = error.message
        _send(answers, answer)


def _answer(command: object, deaths: Deaths) -> object:
    if isinstance(command, Attempt):
        return _try(command, deaths)
    if isinstance(command, Release):
        return _release(command, deaths)
    return _count(command)  # type: ignore[arg-type]


def _release(command: Release, deaths: Deaths) -> CutOutcome:
    deaths.guard()
    with fence.patience(FINALIZERS_S):
        differential.release(command.owner)
    died = deaths.since_guard()
    return CutOutcome(died, deaths.weigh(died))


def _try(attempt: Attempt, deaths: Deaths) -> CutOutcome:
    deaths.guard()
    try:
        with fence.patience(FINALIZERS_S):
            for reference in attempt.references:
                cut.cut(reference)
            if attempt.release:
                differential.release(attempt.release)
            if attempt.collect:
                _collect(deaths)
    except cut.Uncuttable as error:
        return CutOutcome(frozenset(), 0, str(error))
    died = deaths.since_guard()
    return CutOutcome(died, deaths.weigh(died))


def _collect(deaths: Deaths) -> None:
    """Until nothing more dies: a graph in C++ hides the cycle of one layer from gc until that of the layer above is gone."""
    died = -1
    while (now := len(deaths.since_guard())) > died:
        died = now
        fence.collect()


def _count(wanted: Sequence[Count]) -> list[Counted | str]:
    unknown = calibration.why_not()
    if unknown is not None:
        return [unknown] * len(wanted)
    return [_counted(one) for one in wanted]


def _counted(one: Count) -> Counted | str:
    try:
        thing = cut.reach(one.anchor, one.path)
    except cut.Uncuttable as error:
        return str(error)
    is_tensor = peek.is_tensor(thing)
    # Two references are ours: the variable and the argument; a wrapper that `reach` made is ours altogether.
    wrapper = 0 if one.is_new else sys.getrefcount(thing) - 2
    if not is_tensor:
        uses = _uses(thing)
        return Counted(wrapper, 0, uses, False, uses > 1)
    tensor = torch._C.TensorBase._use_count(thing) - (1 if one.is_new else 0)  # type: ignore[attr-defined]
    if tensor == 0:  # a sparse tensor hands out an alias of its indices; the one that it keeps is its own alone
        return Counted(0, 1, _storage_uses(thing) - 1, True, False)
    return Counted(wrapper, tensor, _storage_uses(thing), True, tensor > 1)


def _storage_uses(tensor: torch.Tensor) -> int:
    """The TensorImpls that share the storage, and other owners in C++; 0 where a tensor has no storage of its own."""
    try:
        return _uses(vars(torch._C.TensorBase)["untyped_storage"](tensor)) - 1
    except (NotImplementedError, RuntimeError):
        return 0


def _uses(storage: torch.UntypedStorage) -> int:
    """The owners of a storage in C++, its wrapper among them."""
    return int(torch._C._storage_Use_Count(storage._cdata))


def _send(descriptor: int, thing: object) -> None:
    payload = pickle.dumps(thing)
    view = memoryview(len(payload).to_bytes(_HEAD, "little") + payload)
    while view:
        view = view[os.write(descriptor, view[: 1 << 20]) :]


def _receive(descriptor: int) -> Any:
    return pickle.loads(_read(descriptor, int.from_bytes(_read(descriptor, _HEAD), "little")))


def _read(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise EOFError("end of pipe")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)

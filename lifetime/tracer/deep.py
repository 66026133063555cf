"""`--deep`: where each storage was made, by a dispatch mode that sees every operation. Slow, and only when asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from lifetime.heap.graph import StorageId
from lifetime.tracer.spots import shown

_NOT_THE_USERS = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.dirname(__file__)) + os.sep)


class Births(TorchDispatchMode):
    """`places` maps a storage that is alive to `path:line in function`, the innermost line that is neither torch's nor ours."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seen: dict[StorageId, tuple[StorageWeakRef, str]] = {}

    def places(self) -> Mapping[StorageId, str]:
        self._seen = {key: entry for key, entry in self._seen.items() if not entry[0].expired()}
        return {key: place for key, (_, place) in self._seen.items()}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            key = StorageId(storage._cdata)
            entry = self._seen.get(key)
            if entry is None or entry[0].expired():
                self._seen[key] = (StorageWeakRef(storage), _place())
        return result


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _place() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return f"{shown(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"

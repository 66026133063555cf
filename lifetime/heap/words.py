"""References overwritten in an object's own memory: how an immutable holder is made to let go.

Tuples, frames, partials, bound methods, exception slots, `lru_cache` links, tasks, ndarrays: none has a setter, all keep plain
pointers in memory that CPython lets one find. Only ever done in a child that ends at once.
Source: CPython 3.10 to 3.14, Include/cpython/{frameobject,setobject,dictobject}.h and Objects/frameobject.c.
"""

from __future__ import annotations

import contextvars
import ctypes
import gc
import sys
import types
from collections.abc import Iterator
from typing import Any

from lifetime.heap import frames, peek, threads

WORD = ctypes.sizeof(ctypes.c_void_p)
HEADER = 2 * WORD
"""Reference count and type: the first is no pointer, the second is not to be cut."""
_FRAMES_ARE_APART = sys.version_info >= (3, 11)
"""Variables lie outside of the frame object, those of a generator in the generator; on 3.10 both have a frame object with them."""
_FRAME_POINTER = 3 * WORD
"""Offset of `f_frame` in a frame object since 3.11: after the header and `f_back`."""
_FRAME_HEADER = 96
"""No less than the fields of `_PyInterpreterFrame` before its locals (72 on 3.11 to 3.13)."""
_SET_FIELDS = (4 * WORD, 5 * WORD)
"""Offsets of `mask` and `table` in a set: after the header, `fill` and `used`."""
_DICT_KEYS = 4 * WORD
"""Offset of `ma_keys` in a dict: after the header, `ma_used` and the version or watcher tag."""

Region = tuple[int, int]
"""An address and a length in bytes."""


def overwrite(holder: object, target: int, times: int = 1) -> int:
    """How many pointers to `target` in the memory that `holder` owns became None and were given up; at most `times`."""
    done = 0
    for region in _regions(holder):
        done += _replace(region, target, times - done)
        if done == times:
            break
    return done


def pointer_at(address: int) -> int:
    """The word at `address`; the address must be mapped."""
    return ctypes.c_void_p.from_address(address).value or 0


def overwrite_at(address: int) -> None:
    """Make the pointer at `address` one to None and give up the reference that it was."""
    target = pointer_at(address)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(None))
    ctypes.c_void_p.from_address(address).value = id(None)
    let_go(target)


def let_go(target: int, times: int = 1) -> None:
    """Give up `times` references to the object at `target`, whoever had them."""
    for _ in range(times):
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(target))


def _replace(region: Region, target: int, times: int) -> int:
    start, length = region
    words = memoryview(ctypes.string_at(start, length // WORD * WORD)).cast("Q")
    found = [start + i * WORD for i, word in enumerate(words) if word == target][:times]
    for address in found:
        overwrite_at(address)
    return len(found)


def _regions(holder: object) -> Iterator[Region]:
    kind = type(holder)
    if issubclass(kind, types.FrameType):
        yield _frame(holder)
        return
    if issubclass(kind, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        yield from _suspended(holder)
        return
    yield id(holder) + HEADER, max(object.__sizeof__(holder), kind.__basicsize__) - HEADER
    if issubclass(kind, (set, frozenset)):
        mask, table = (pointer_at(id(holder) + offset) for offset in _SET_FIELDS)
        yield table, (mask + 1) * HEADER
    elif issubclass(kind, dict):
        yield pointer_at(id(holder) + _DICT_KEYS), dict.__sizeof__(holder) - kind.__basicsize__
    else:
        yield from _array(holder)
        yield from _cache_links(holder)
        yield from _variables(holder)


def _variables(holder: object) -> Iterator[Region]:
    """A context keeps its variables in a tree of nodes that it may share with others."""
    nodes = [holder] if threads.is_hamt(holder) or issubclass(type(holder), contextvars.Context) else []
    for node in nodes:  # grows as we go
        nodes += [one for one in gc.get_referents(node) if threads.is_hamt(one)]
        yield id(node) + HEADER, object.__sizeof__(node) - HEADER


def _frame(frame: Any) -> Region:
    if not _FRAMES_ARE_APART:
        return id(frame) + HEADER, frames.LAYOUTS[3, 10].variables - HEADER + len(frames.names_of(frame.f_code)) * WORD
    start = pointer_at(id(frame) + _FRAME_POINTER)
    return start, _FRAME_HEADER + _locals_bytes(frame.f_code)


def _suspended(holder: Any) -> Iterator[Region]:
    inside = _locals_bytes(_code(holder)) if _FRAMES_ARE_APART else 0
    yield id(holder) + HEADER, type(holder).__basicsize__ - HEADER + inside
    frame = next((getattr(holder, name) for name in ("gi_frame", "cr_frame", "ag_frame") if hasattr(holder, name)), None)
    if frame is not None and not _FRAMES_ARE_APART:
        yield _frame(frame)


def _code(suspended: Any) -> types.CodeType:
    names = ("gi_code", "cr_code", "ag_code")
    code: types.CodeType = next(getattr(suspended, name) for name in names if hasattr(suspended, name))
    return code


def _locals_bytes(code: types.CodeType) -> int:
    cells_in_arguments = set(code.co_cellvars) & set(code.co_varnames)
    count = code.co_nlocals + len(code.co_cellvars) - len(cells_in_arguments) + len(code.co_freevars)
    return (count + code.co_stacksize) * WORD


def _array(holder: Any) -> Iterator[Region]:
    """The elements of an array of objects, which numpy hides from gc."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(type(holder), numpy.ndarray) or not numpy.ndarray.dtype.__get__(holder).hasobject:
        return
    if holder.flags.c_contiguous or holder.flags.f_contiguous:
        yield holder.ctypes.data, holder.nbytes


def _cache_links(holder: object) -> Iterator[Region]:
    """A bounded `lru_cache` keeps keys and results in links that gc does not track and shows as its own referents."""
    if peek.qualname(type(holder)) != "_lru_cache_wrapper":
        return
    for cache in gc.get_referents(holder):
        if type(cache) is dict:
            for link in cache.values():
                if peek.qualname(type(link)).endswith("_lru_list_elem"):
                    yield id(link) + HEADER, type(link).__basicsize__ - HEADER

"""Holders that gc does not track: ndarrays, DLPack capsules, stand-alone saved tensors, collectives in flight.

They never show up as referrers, so the search ends at what they hold. One pass forward over all containers finds them, and
the small untracked tuples and dicts that they lie in.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, cast

import torch

from lifetime.heap import autograd, peek, scan
from lifetime.heap.callbacks import callbacks
from lifetime.heap.graph import EdgeKind, Layer, ObjectId, StorageId
from lifetime.heap.search import Search
from lifetime.heap.watch import subclasses

MOST_BASES = 8
"""Arrays that are views of views before one that a tensor owns."""
_CAPSULE = type(sys.modules["datetime"].datetime_CAPI) if "datetime" in sys.modules else None


def climb(search: Search, wanted: Iterable[ObjectId]) -> None:
    """Search on above dead ends: through holders that gc does not track."""
    ends = {ObjectId(id(end)) for end in search.dead_ends()}
    if not ends:
        return
    before = len(search.edges)
    pairs = {(id(container), id(thing)): (container, thing) for container, thing in _holders(search.everything, ends)}
    held = [pair for pair in pairs.values() if _connect(search, pair[1], ends, set(wanted))]
    for container, thing in held:
        search.add(container, thing, EdgeKind.INTERNAL, "")
    found = islice(search.edges.values(), before, None)
    search.climb_again({edge.source for edge in found if edge.source in search.objects} if held else ())


def release(holder: Any, name: str, target: int) -> bool:
    """Let go of what a C++ holder owns, where an API does that; False where there is none."""
    return False


def _holders(everything: Sequence[object], ends: AbstractSet[int]) -> Iterator[tuple[object, object]]:
    """(container, holder in it) for every holder of a kind that gc does not track; untracked containers are looked into, and come
    once for each holder in them."""
    kinds = _kinds()
    for start in range(0, len(everything), scan.CHUNK):
        chunk = everything[start : start + scan.CHUNK]
        found = gc.get_referents(*chunk)
        here = dict(zip(map(id, map(type, found)), map(type, found), strict=True))  # by id: a metaclass may refuse to be hashed
        if not any(key in kinds or kind is dict or peek.is_kind(kind, tuple) for key, kind in here.items()):
            continue
        if any(id(type(one)) in kinds or _is_untracked(one) for one in found):
            for container in chunk:
                yield from _inside(container, kinds, ends)


def _inside(container: object, kinds: dict[int, type], ends: AbstractSet[int]) -> Iterator[tuple[object, object]]:
    for one in gc.get_referents(container):
        if id(type(one)) in kinds:
            yield container, one
        elif _is_untracked(one):
            if not ends.isdisjoint(map(id, gc.get_referents(one))):
                yield container, one
            for inner in _inside(one, kinds, ends):
                yield container, one
                yield inner


def _is_untracked(one: object) -> bool:
    """A plain container that gc leaves out, or a struct sequence of C (`torch.return_types.max`), which it never tracks."""
    return (type(one) is dict or peek.is_a(one, tuple)) and not gc.is_tracked(one) and bool(gc.get_referents(one))


def _kinds() -> dict[int, type]:
    """The types of such holders, as far as their libraries are imported, by id."""
    found: list[type | None] = [_CAPSULE, autograd.SAVED_TYPE]
    numpy: Any = sys.modules.get("numpy")
    found += [getattr(numpy, "flatiter", None), *subclasses(numpy.ndarray).values()] if hasattr(numpy, "ndarray") else []
    work = getattr(getattr(torch._C, "_distributed_c10d", None), "Work", None)
    if work is not None:
        found += [work, *peek.subclasses(work)]
    found += [torch._C.Future, *peek.subclasses(torch._C.Future), torch._C.ScriptModule]
    return {id(kind): kind for kind in found if kind is not None}


def _connect(search: Search, holder: Any, ends: set[ObjectId], wanted: set[ObjectId]) -> bool:
    """Note what the holder refers to, if that is a dead end or a storage that is asked for."""
    if type(holder) is dict or peek.is_a(holder, tuple):
        return _direct(search, holder, ends) or any(_connect(search, inner, ends, wanted) for inner in gc.get_referents(holder))
    names = " ".join(map(peek.class_name, peek.mro(type(holder))))
    reader = next((read for kind, read in _READERS if kind in names), None)
    try:
        return reader is not None and reader(search, holder, ends | wanted)
    except Exception as error:  # one odd holder must not cost the whole look
        search.gaps[f"{peek.type_name(holder)} could not be read: {peek.type_name(error)}"] = None
        return False


def _direct(search: Search, holder: Any, ends: set[ObjectId]) -> bool:
    """What an untracked container itself refers to, if it is a dead end."""
    found = [one for one in gc.get_referents(holder) if ObjectId(id(one)) in ends]
    for one in found:
        search.add(holder, one, EdgeKind.INTERNAL, "")
    return bool(found)


def _array(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    if holder.dtype.hasobject:
        found = [_element(search, holder, name, item, wanted) for name, item in _elements(holder)]
        return any(found)
    if peek.qualname(type(holder.base)) == "PyCapsule":
        return _lies_at(search, holder, holder.ctypes.data, wanted)
    chain = [holder, holder.base]
    while len(chain) < MOST_BASES and peek.is_a(chain[-1], sys.modules["numpy"].ndarray):
        chain.append(chain[-1].base)
    if ObjectId(id(chain[-1])) not in wanted:
        return False
    for one, base in zip(chain, chain[1:], strict=False):
        search.add(one, base, EdgeKind.ATTRIBUTE, ".base")
    return True


def _elements(array: Any) -> Iterator[tuple[str, object]]:
    """The items of an array of objects and how they are read, those in the fields of records too."""
    if array.dtype.names is None:
        for index, item in enumerate(array.flat):
            yield f"[{index}]" if array.ndim == 1 else f".flat[{index}]", item
        return
    for field in array.dtype.names:
        if array.dtype[field].hasobject:
            yield from ((f"[{field!r}]{name}", item) for name, item in _elements(array[field]))


def _element(search: Search, holder: Any, name: str, item: object, wanted: set[ObjectId]) -> bool:
    """An array of objects owns them, hidden from gc."""
    if ObjectId(id(item)) not in wanted:
        return False
    search.add(holder, item, EdgeKind.ITEM, name)
    return True


def _iterator(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    """An iterator over an array (`array.flat`)."""
    found = _array(search, holder.base, wanted)
    if found:
        search.add(holder, holder.base, EdgeKind.ATTRIBUTE, ".base")
    return found


def _saved(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    value = autograd.saved_value(holder)
    if not peek.is_tensor(value):
        return False
    layer = Layer.TENSOR if autograd.unpack_hook(holder) is None else Layer.WRAPPER
    return _owns(search, holder, value, ".data", wanted, layer, EdgeKind.SAVED)


def _work(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    try:
        results = holder.result()
    except Exception:  # not finished, or this kind of work has no result
        return False
    found = [_owns(search, holder, tensor, f".result()[{i}]", wanted, Layer.TENSOR) for i, tensor in enumerate(results)]
    return any(found)


def _future(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    """A future keeps its value in C++, a Python object, or the tensors that a collective works on; until then what it will call."""
    if not holder.done():
        return _to_be_called(search, holder, wanted)
    value: Any = holder.value()
    if ObjectId(id(value)) in wanted:
        search.add(holder, value, EdgeKind.NATIVE, ".value()")
        return True
    tensors = enumerate(value if peek.is_exactly(value, list, tuple) else ())
    found = [_owns(search, holder, one, f".value()[{i}]", wanted, Layer.TENSOR) for i, one in tensors if peek.is_tensor(one)]
    return any(found)


def _to_be_called(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    found = callbacks(holder, wanted)
    for address in found:
        search.add(holder, search.objects[ObjectId(address)], EdgeKind.NATIVE, "<callbacks>")
    return bool(found)


def _script(search: Search, holder: Any, wanted: set[ObjectId], way: str = "", inside: Any = None) -> bool:
    """A scripted module keeps parameters and buffers in C++, its own and those of its submodules; these have no lasting wrapper."""
    module, readers = holder if inside is None else inside, cast(Any, torch._C)
    tensors = [*readers.ParameterDict(module).items(), *readers.BufferDict(module).items(), *_traced_with(module)]
    found = [_owns(search, holder, tensor, f"{way}.{name}", wanted, Layer.TENSOR) for name, tensor in tensors]
    inner = readers.ModuleDict(module).items()
    return any([*found, *[_script(search, holder, wanted, f"{way}.{name}", part) for name, part in inner]])


def _traced_with(module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The example inputs that a trace keeps."""
    for method, inputs in module._retrieve_traced_inputs().items():
        for index, one in enumerate(inputs if peek.is_exactly(inputs, list, tuple) else ()):
            if peek.is_tensor(one):
                yield f"_retrieve_traced_inputs()[{method!r}][{index}]", one


def _capsule(search: Search, holder: Any, wanted: set[ObjectId]) -> bool:
    """A DLPack capsule begins with the address of the data; in torch >= 2.9 it owns the very tensor it was made of."""
    return _lies_at(search, holder, _exported(holder), wanted)


def _lies_at(search: Search, holder: Any, address: int | None, wanted: set[ObjectId]) -> bool:
    """Note that `holder` owns the tensor, or the storage, whose data lie at `address`."""
    for key, storage in search.bare(wanted):
        if address and storage.data_ptr() <= address < storage.data_ptr() + max(storage.nbytes(), 1):
            exported = [t for t in search.tensors_of(key) if t.data_ptr() == address]
            if exported:
                search.add(holder, exported[0], EdgeKind.NATIVE, "<dltensor>", Layer.TENSOR)
            else:
                search.add_owner(holder, key, "<dltensor>")
            return True
    return False


def _exported(capsule: Any) -> int | None:
    """The address of the data that a capsule exports, if it does."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    label = name(capsule)
    if label not in (b"dltensor", b"dltensor_versioned"):
        return None
    return ctypes.c_void_p.from_address(pointer(capsule, label) or 0).value


def _owns(
    search: Search, holder: Any, tensor: Any, name: str, wanted: set[ObjectId], layer: Layer, kind: EdgeKind = EdgeKind.NATIVE
) -> bool:
    storage = StorageId(vars(torch._C.TensorBase)["untyped_storage"](tensor)._cdata)
    if ObjectId(id(tensor)) not in wanted and ObjectId(storage) not in wanted:
        return False
    search.add(holder, tensor, kind, name, layer)
    search.add(tensor, tensor.untyped_storage(), EdgeKind.STORAGE, ".untyped_storage()", Layer.STORAGE)
    return True


_READERS: tuple[tuple[str, Callable[[Search, Any, set[ObjectId]], bool]], ...] = (
    ("ndarray", _array),
    ("flatiter", _iterator),
    ("Future", _future),
    ("ScriptModule", _script),
    ("SavedTensor", _saved),
    ("Work", _work),
    ("PyCapsule", _capsule),
)

"""The heap as a graph of ids and text: what the capture hands to the judgement. Holds no live object.

Note [three layers]: a tensor is a Python wrapper, a C++ TensorImpl and a StorageImpl. A wrapper and its TensorImpl are one
node here (kind TENSOR); a storage is a node of its own (kind STORAGE), so that views share it and a saved output without a
wrapper is a TENSOR node too. An edge into a TENSOR node says which layer it owns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NewType

from lifetime.heap.model import Gap, RootKind, TensorFacts

ObjectId = NewType("ObjectId", int)
StorageId = NewType("StorageId", int)


class NodeKind(str, Enum):
    OBJECT = "object"
    TENSOR = "tensor"
    STORAGE = "storage"
    AUTOGRAD = "autograd"
    FRAME = "frame"
    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"


class EdgeKind(str, Enum):
    """How a holder refers to what it holds; `name` on the edge is the text that Python would read."""

    ATTRIBUTE = "attribute"
    ITEM = "item"
    KEY = "key"
    CELL = "cell"
    CLOSURE = "closure"
    DEFAULT = "default"
    LOCAL = "local"
    GLOBAL = "global"
    BOUND = "bound"
    TRACEBACK = "traceback"
    GRAD = "grad"
    GRAD_FN = "grad_fn"
    NEXT = "next"
    SAVED = "saved"
    VARIABLE = "variable"
    BASE = "base"
    HOOK = "hook"
    STORAGE = "storage"
    NATIVE = "native"
    INTERNAL = "internal"


class Layer(str, Enum):
    WRAPPER = "wrapper"
    TENSOR = "tensor"
    STORAGE = "storage"


@dataclass(frozen=True, slots=True)
class Node:
    """`type_name` is qualified (`train.Trainer`), `label` what a reader should see, `where` a definition (`path:line`)."""

    id: ObjectId
    kind: NodeKind
    type_name: str
    label: str = ""
    where: str | None = None
    tensor: TensorFacts | None = None
    storage: StorageId | None = None
    bound: int | None = None
    """How many items the container can hold (`deque(maxlen=3)`, `lru_cache(maxsize=128)`), or None where nothing limits it."""
    base: str = ""
    """The well-known class it is an instance of: `torch.nn.Module`, `torch.nn.Parameter`, `torch.optim.Optimizer`, or nothing."""
    is_hollow: bool = False
    """A torch module without a parameter, a buffer or a module in it: nothing else tells when it was made."""


@dataclass(frozen=True, slots=True)
class Edge:
    """`source` refers to `target`. `count` is how many times (a list can hold an object twice)."""

    source: ObjectId
    target: ObjectId
    kind: EdgeKind = EdgeKind.INTERNAL
    name: str = ""
    count: int = 1
    layer: Layer = Layer.WRAPPER


@dataclass(frozen=True)
class RootRef:
    """A place outside the heap that refers to `target`. `expression` is Python that evaluates to `target`, or None; `depth` how
    many calls a running function is under way in, 0 for the innermost."""

    target: ObjectId
    kind: RootKind
    name: str
    where: str | None = None
    expression: str | None = None
    depth: int = 0


@dataclass(frozen=True)
class Watched:
    """A storage under watch: the step of its birth (0-based boundary index; step s lies before boundary s), its size."""

    storage: StorageId
    birth_step: int
    nbytes: int
    created_at: str | None = None
    address: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """The part of the heap from which the survivors can be reached backwards, and what is known about its roots.

    `garbage`: storages that died when the forked child ran `gc.collect()` (a Python cycle held them).
    `unrooted` ones that did not die are held by C++: a native cycle or an owner that no reader names.
    """

    nodes: Mapping[ObjectId, Node]
    edges: tuple[Edge, ...]
    roots: tuple[RootRef, ...]
    watched: Mapping[StorageId, Watched]
    garbage: frozenset[StorageId] = frozenset()
    gaps: tuple[Gap, ...] = field(default=())


@dataclass(frozen=True)
class Death:
    """`count` watched storages of `nbytes` that were born in step `birth_step` and last seen at boundary `last_step`."""

    birth_step: int
    last_step: int
    nbytes: int
    count: int = 1
    collected: bool = False
    """Whether it died inside a collection of Python's gc: a cycle held it."""


@dataclass(frozen=True)
class History:
    """The boundaries that count, `first` (after warm-up) to `last`, both included, in the numbering of `Watched.birth_step`.

    `deaths` are storages that outlived a boundary and died at a later one: what tells a buffer that turns over from a leak.
    """

    first: int
    last: int
    deaths: tuple[Death, ...] = ()


@dataclass(frozen=True)
class CutOutcome:
    """What a cut in the forked child did: which storages died, how many bytes that freed, or `why` it could not be tried."""

    died: frozenset[StorageId]
    frees_bytes: int
    why: str | None = None
    emptied: str = ""
    """An owner in C++ that had to let go too."""

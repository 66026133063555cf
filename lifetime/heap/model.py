"""What a trace says: the report, in the words of the JSON contract (`lifetime.report/1`). No torch, no IO, no formatting.

Field names are the JSON keys. None means "not known", never 0; whatever is not known has a gap that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

SCHEMA = "lifetime.report/1"
LATER = {"later": True}
"""Metadata of fields that earlier reports lack: they read as the default."""
ADDRESS = "Where the storage's data lies. Recorded by --addresses alone: no two runs agree on it."
STACK = "The calls that allocated the storage, the innermost first: joined from a memory snapshot, by the address."


class Verdict(str, Enum):
    """What kind of survivor. The order of the members is the order in a report."""

    GROWING = "growing"
    UNTIL_GC = "until-gc"
    LINGERING = "lingering"


class SiteVerdict(str, Enum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_REACHED = "not-reached"


class RootKind(str, Enum):
    GLOBAL = "global"
    CLASS = "class"
    LOCAL = "local"
    THREAD = "thread"
    SUSPENDED_FRAME = "suspended-frame"
    REFERENCE_CYCLE = "reference-cycle"
    NATIVE_CYCLE = "native-cycle"
    NATIVE = "native"
    INTERPRETER = "interpreter"


class Leaking(str, Enum):
    NO = "no"
    UNKNOWN = "unknown"
    YES = "yes"


class Proof(str, Enum):
    PROVED = "proved"
    DISPROVED = "disproved"
    NOT_TRIED = "not-tried"


@dataclass(frozen=True)
class Gap:
    """Something that could not be seen, and why."""

    where: str
    why: str


@dataclass(frozen=True)
class GcState:
    enabled: bool
    mode: str
    """`as-is` or `off`: what the tracer did about the user's setting."""


@dataclass(frozen=True)
class Environment:
    python: str
    torch: str | None
    device: str
    gc: GcState
    rank: int
    world_size: int
    command: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One boundary. `live_bytes` counts the storages that the tracer saw alive; the others are the allocator's figures."""

    index: int
    live_bytes: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Reader:
    """One place that reads `.grad` of a watched leaf after the harvest, as observed in the run."""

    path: str
    line: int
    function: str
    count: int


@dataclass(frozen=True)
class Site:
    """What the run showed at one line that lint found. `context` is a hash of the code that leads up to it (empty: not taken)."""

    code: str
    path: str
    line: int
    function: str | None
    hits: int
    captured_hits: int
    verdict: SiteVerdict
    survivors: tuple[str, ...] = ()
    bytes_per_step: int = 0
    outlived_call_bytes: int = 0
    readers: tuple[Reader, ...] = ()
    context: str = ""


@dataclass(frozen=True)
class TensorFacts:
    """`storage_bytes` is the whole storage, which a small view can keep alive; `label` names the tensor's class or role."""

    label: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    storage_bytes: int
    created_at: str | None = None
    address: int | None = field(default=None, metadata=LATER | {"description": ADDRESS})
    stack: tuple[str, ...] = field(default=(), metadata=LATER | {"description": STACK})


@dataclass(frozen=True)
class Root:
    kind: RootKind
    name: str
    where: str | None = None


@dataclass(frozen=True)
class Link:
    """One reference of a chain: `holder` refers through `reference` to the next holder, the last one to the tensor.

    `reference` reads as Python does: `.grad_fn`, `.next_functions[0][0]`, `['k']`, `[3]`. `kind` is an `EdgeKind` value.
    """

    holder: str
    holder_type: str
    reference: str
    kind: str
    where: str | None = None
    leaking: Leaking = Leaking.UNKNOWN
    reason: str = ""


@dataclass(frozen=True)
class Chain:
    """From a root to the tensor. `cycle` is the index of the link that the last one closes on; `expression` is Python
    that evaluates to the tensor, where there is one."""

    root: Root
    links: tuple[Link, ...]
    cycle: int | None = None
    expression: str | None = None


@dataclass(frozen=True)
class Known:
    """The entry of the catalogue of known holders that matched."""

    pattern: str
    description: str
    reference: str


@dataclass(frozen=True)
class Layer:
    """Owners found against owners counted; both 0 where the layer does not exist."""

    named: int = 0
    counted: int = 0


@dataclass(frozen=True)
class Owners:
    wrapper: Layer
    tensor: Layer
    storage: Layer


@dataclass(frozen=True)
class Cut:
    """The one reference that is blamed. `link` is its index in the chain; `frees_bytes` is what really died in the fork when
    `proof` is proved, else what the graph says would. It was cut in `count` places of the same kind; `also` are the references of
    another kind that had to go with it, as Python where that can be."""

    link: int
    reference: str
    frees_bytes: int
    proof: Proof
    why: str | None = None
    count: int = field(default=1, metadata=LATER)
    also: tuple[str, ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True)
class Survivor:
    """One leak, however many storages hang below the blamed reference; `tensor` and `chain` are the largest member's.
    Its `repr` is short: a report, or `lifetime.who`, tells the whole."""

    fingerprint: str
    verdict: Verdict
    count: int
    count_per_step: float
    bytes: int
    bytes_per_step: int
    tensor: TensorFacts = field(repr=False)
    chain: Chain = field(repr=False)
    known: Known | None = field(repr=False)
    owners: Owners | None = field(repr=False)
    cut: Cut = field(repr=False)
    hint: str = field(repr=False)
    gaps: tuple[Gap, ...] = field(default=(), repr=False)
    judged: bool = field(default=True, metadata=LATER, repr=False)
    """False where the question was who holds it, and not whether it should be alive."""


@dataclass(frozen=True)
class Report:
    environment: Environment = field(repr=False)
    steps: tuple[Step, ...] = field(default=(), repr=False)
    sites: tuple[Site, ...] = field(default=(), repr=False)
    survivors: tuple[Survivor, ...] = ()
    gaps: tuple[Gap, ...] = field(default=(), repr=False)
    schema: str = field(default=SCHEMA, repr=False)

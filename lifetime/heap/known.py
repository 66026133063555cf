"""Holders in libraries that are known to keep tensors: named when they are met, and no way to explain what others hold.

Each entry stands for one public report. It applies where that library is installed in a version that the report is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version

from lifetime.heap.graph import Edge, Node
from lifetime.heap.model import Known
from lifetime.heap.references import blurred, holder, reference

Version = tuple[int, ...]


@dataclass(frozen=True)
class KnownHolder:
    """`holder` begins the type's qualified name, or is the function's name for a frame or a closure; `names` are its references.

    `applies` is asked with the installed version of `library`; it was read off the tagged sources. Without one, every release up to
    torch 2.14.1, DeepSpeed 0.19.6 and accelerate 1.15.0 is meant.
    """

    library: str
    holder: str
    names: frozenset[str]
    description: str
    report: str
    applies: Callable[[Version], bool] = lambda installed: True

    def matches(self, node: Node, written: str) -> bool:
        return written in self.names and (node.type_name.startswith(self.holder) or holder(node) == self.holder)

    def known(self) -> Known:
        return Known(f"{self.holder}{'|'.join(sorted(self.names))}", self.description, self.report)


CATALOGUE = (
    KnownHolder(
        "torch",
        "wrap",
        frozenset({".currentframe"}),
        "torch.fx.wrap keeps its own frame in a local, and with it the stack that first imported torch._dynamo",
        "https://github.com/pytorch/pytorch/issues/195586",
    ),
    KnownHolder(
        "transformer_engine",
        "transformer_engine.",
        frozenset({".tensor_objects"}),
        "restore_from_saved puts saved tensors back on ctx, where nothing releases them; 2.15 does",
        "https://github.com/NVIDIA/TransformerEngine/pull/2772",
        applies=lambda installed: (2, 0) <= installed < (2, 15),
    ),
    KnownHolder(
        "transformer_engine",
        "transformer_engine.",
        frozenset({"._fp8_workspaces"}),
        "quantized copies of weights are cached on each module and pile up under FSDP2; from 2.16 on they are not kept there",
        "https://github.com/NVIDIA/TransformerEngine/pull/2805",
        applies=lambda installed: (1, 8) <= installed < (2, 16),
    ),
    KnownHolder(
        "deepspeed",
        "torch.nn.parameter.Parameter",
        frozenset({"._hp_mapping"}),
        "low-precision parameters hold their high-precision mapping, a cycle, until engine.destroy() (0.14.5 or newer)",
        "https://github.com/deepspeedai/DeepSpeed/pull/5643",
    ),
    KnownHolder(
        "accelerate",
        "accelerate.accelerator.Accelerator",
        frozenset({"._models", "._optimizers", "._dataloaders", "._schedulers"}),
        "an Accelerator holds all that it prepared until free_memory()",
        "https://github.com/huggingface/accelerate/issues/84",
    ),
    KnownHolder(
        "accelerate",
        "accelerate.state.GradientState",
        frozenset({".active_dataloader", ".dataloader_references"}),
        "the shared GradientState keeps prepared data loaders alive; from 1.4 on its references are weak",
        "https://github.com/huggingface/accelerate/pull/3391",
        applies=lambda installed: installed < (1, 4),
    ),
)

ASIDE = frozenset(entry.holder for entry in CATALOGUE if entry.holder.startswith("accelerate."))
"""Types that refer to all that was ever given to them: a path through one is taken only where there is no other."""


def known(nodes: Sequence[Node], edges: Sequence[Edge], catalogue: Iterable[KnownHolder] | None = None) -> Known | None:
    """The first entry that a chain passes; `nodes[k]` is the source of `edges[k]`."""
    entries = installed() if catalogue is None else tuple(catalogue)
    for node, edge in zip(nodes, edges, strict=False):
        written = blurred(reference(edge))
        for entry in entries:
            if entry.matches(node, written):
                return entry.known()
    return None


@lru_cache(maxsize=1)
def installed() -> tuple[KnownHolder, ...]:
    """The entries about libraries that are installed here, in a version that they are about."""
    return tuple(entry for entry in CATALOGUE if (found := _version(entry.library)) is not None and entry.applies(found))


@cache
def _version(library: str) -> Version | None:
    try:
        text = version(library)
    except PackageNotFoundError:
        return None
    parts = text.split("+")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())

"""Whether an object on a chain is alive on purpose: small inspectors, each with a reason."""

from __future__ import annotations

from collections.abc import Callable

from lifetime.heap.graph import Node, NodeKind
from lifetime.heap.model import Leaking, RootKind

Status = tuple[Leaking, str]
Inspector = Callable[[Node], "str | None"]
"""Why the object is alive on purpose, or None where the inspector has no opinion."""

_BESIDE_OPTIMIZERS = ("torch.optim.lr_scheduler.", "torch.optim.swa_utils.")
"""Modules of `torch.optim` whose classes are no optimizers."""
UNKNOWN: Status = (Leaking.UNKNOWN, "")
RUNNING = frozenset({RootKind.LOCAL, RootKind.THREAD})
REGISTERED = frozenset({"_parameters", "_buffers"})
"""The dictionaries in which a torch module keeps the tensors that are its own."""
SCRIPTED = "torch.ScriptModule"
"""The C++ half of a scripted module, where it keeps them."""


def _module(node: Node) -> str | None:
    return "a module lives as long as the program" if node.kind is NodeKind.MODULE else None


def _class(node: Node) -> str | None:
    return "a class lives as long as its module" if node.kind is NodeKind.CLASS else None


def _optimizer(node: Node) -> str | None:
    return "an optimizer lives as long as the training" if is_optimizer(node) else None


def _torch_module(node: Node) -> str | None:
    return "a model lives as long as the training" if is_torch_module(node) else None


def _parameter(node: Node) -> str | None:
    return "a parameter lives as long as its model" if is_parameter(node) else None


INSPECTORS: tuple[Inspector, ...] = (_module, _class, _optimizer, _torch_module, _parameter)


def inspect(node: Node, root: RootKind | None = None, fresh: bool = False) -> Status:
    """What the inspectors say of `node`; `root` is the kind of the root that refers to it, if one does.

    A `fresh` module, parameter, optimizer or class was itself made in a step that is watched: what it is is then no excuse.
    """
    if node.kind is NodeKind.FRAME and root in RUNNING:
        return Leaking.NO, "the function is running"
    if fresh and (is_torch_module(node) or is_parameter(node) or is_optimizer(node) or node.kind is NodeKind.CLASS):
        return UNKNOWN
    reason = next((why for why in (inspector(node) for inspector in INSPECTORS) if why), None)
    return (Leaking.NO, reason) if reason else UNKNOWN


def is_optimizer(node: Node) -> bool:
    return node.base == "torch.optim.Optimizer" or (
        node.type_name.startswith("torch.optim.") and not node.type_name.startswith(_BESIDE_OPTIMIZERS)
    )


def is_torch_module(node: Node) -> bool:
    return node.kind is NodeKind.OBJECT and (node.base == "torch.nn.Module" or node.type_name.startswith("torch.nn.modules."))


def is_parameter(node: Node) -> bool:
    return node.kind is NodeKind.TENSOR and (node.base == "torch.nn.Parameter" or node.type_name.endswith("nn.parameter.Parameter"))

"""What this machine lets the tracer see: every private or fragile thing it relies on, tried once."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from lifetime.heap import autograd, frames
from lifetime.heap.fork import cannot_fork


@dataclass(frozen=True)
class Probe:
    """`needed_for` says what a report lacks when the answer is no; `why` says why it is no, None when it is yes."""

    name: str
    needed_for: str
    why: str | None


def probes() -> list[Probe]:
    return [Probe(name, needed_for, _try(check)) for name, needed_for, check in _CHECKS]


def _try(check: Callable[[], object]) -> str | None:
    """None if the check holds; otherwise one sentence."""
    try:
        answer = check()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    if isinstance(answer, str):
        return answer
    return None if answer else "gives another answer than on the versions this was built for"


def _product() -> tuple[torch.Tensor, torch.Tensor]:
    leaf = torch.ones(2, requires_grad=True)
    return leaf, leaf * leaf


def _weak_storage() -> bool:
    tensor = torch.ones(2)
    reference = StorageWeakRef(tensor.untyped_storage())
    alive = not reference.expired()
    del tensor
    return alive and reference.expired()


def _storage_count() -> bool:
    tensor = torch.ones(2)
    count = torch._C._storage_Use_Count
    before = count(tensor.untyped_storage()._cdata)
    view = tensor[:1]
    return bool(count(view.untyped_storage()._cdata) == before + 1)


def _tensor_count() -> bool:
    leaf, out = _product()
    return bool(leaf._use_count() == 4 and out.requires_grad)  # type: ignore[attr-defined]


def _raw_saved() -> bool:
    leaf, out = _product()
    return autograd.saved_value(dict(autograd.saved_slots(out.grad_fn))["_saved_self"]) is leaf


def _emptied_slot() -> bool:
    leaf, out = _product()
    before = leaf._use_count()  # type: ignore[attr-defined]
    out.grad_fn._raw_saved_self.register_hooks(lambda t: None, lambda x: x)  # type: ignore[union-attr]
    return bool(leaf._use_count() == before - 1)  # type: ignore[attr-defined]


def _variable() -> bool:
    leaf, out = _product()
    return out.grad_fn.next_functions[0][0].variable is leaf  # type: ignore[union-attr]


def _node_hooks() -> bool:
    _, out = _product()
    kept = out.grad_fn.register_hook(lambda *_: None)  # type: ignore[union-attr]
    handle = out.grad_fn.register_hook(lambda *_: None)  # type: ignore[union-attr]
    hooks = handle.hooks_dict_ref()
    handle.remove()
    return hooks is not None and kept.id in hooks


def _graph_task() -> bool:
    return torch._C._current_graph_task_id() == -1 and hasattr(torch.autograd.Variable._execution_engine, "queue_callback")


def _engine_entry() -> bool:
    return callable(vars(torch.autograd).get("_engine_run_backward"))


def _optimizer_hooks() -> bool:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    return callable(register_optimizer_step_post_hook)


def _type_referrers() -> bool:
    tensor = torch.ones(2)
    return any(one is tensor for one in gc.get_referrers(torch.Tensor))


def _young_objects() -> bool | str:
    thing: list[object] = []
    listed = any(one is thing for one in gc.get_objects(generation=0))
    return listed or "a new object is not in generation 0"


def _fork() -> bool | str:
    return cannot_fork() or True


def _frames() -> bool | str:
    return frames.supported() or "this Python keeps the variables of running frames elsewhere"


def _calibration() -> bool | str:
    """The counts of a tensor whose owners are all known: what reconciliation starts from."""
    leaf, out = _product()
    view, other = leaf[:1], leaf.detach()
    storages = torch._C._storage_Use_Count(leaf.untyped_storage()._cdata)
    tensors = leaf._use_count()  # type: ignore[attr-defined]
    # wrapper, two saved slots, AccumulateGrad, the view's base; leaf, view and detached share a storage, whose wrapper is one more
    if (tensors, storages) != (5, 4):
        return f"counts {tensors} owners of a tensor where 5 are known, {storages} of its storage where 4 are"
    return out is not view and other is not view


def _allocator() -> bool:
    return hasattr(ctypes.CDLL(None), "mallinfo2")


def _cuda() -> bool | str:
    return torch.cuda.is_available() or "no CUDA device"


_CHECKS: list[tuple[str, str, Callable[[], object]]] = [
    ("StorageWeakRef", "survivors: which bytes outlive a step", _weak_storage),
    ("referrers of torch.Tensor", "survivors: listing live tensors", _type_referrers),
    ("gc.get_objects(generation=0)", "a quick boundary with --gc off", _young_objects),
    ("os.fork", "looking without touching the program, and proof", _fork),
    ("torch._C._storage_Use_Count", "owners of a storage counted", _storage_count),
    ("Tensor._use_count", "owners of a tensor counted", _tensor_count),
    ("calibration of the counts", "owners: named against counted", _calibration),
    ("running frames", "holders: variables of running functions", _frames),
    ("node._raw_saved_*", "tensors that C++ nodes saved", _raw_saved),
    ("SavedTensor.register_hooks", "proof: emptying one saved slot", _emptied_slot),
    ("AccumulateGrad.variable", "leaves of a graph", _variable),
    ("hooks_dict_ref", "hooks on autograd nodes", _node_hooks),
    ("graph task callbacks", "sites: leaves that outlive the call", _graph_task),
    ("_engine_run_backward", "steps: --step backward", _engine_entry),
    ("optimizer step hooks", "steps: --step optimizer", _optimizer_hooks),
    ("mallinfo2", "verify: the allocator's floor on a CPU", _allocator),
    ("CUDA", "device memory and graph capture", _cuda),
]


def versions() -> list[tuple[str, str]]:
    return [("python", sys.version.split()[0]), ("torch", str(torch.__version__)), ("platform", sys.platform)]

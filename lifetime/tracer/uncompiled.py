"""Code of the tracer that TorchDynamo must not compile: it neither traces into it nor runs while it runs.

Source: torch/csrc/dynamo/eval_frame.c (2.13): a code object can be given the strategy to run as it is and so all below it.
That is in torch's C part: `torch._dynamo` is not imported for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_EVAL: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)


def uncompiled(action: Callable[..., Any]) -> Callable[..., Any]:
    """`action` in a shell that TorchDynamo calls as it is, and below which it is off."""

    def shell(*args: Any, **kwargs: Any) -> Any:
        return action(*args, **kwargs)

    strategy, choose = getattr(_EVAL, "_FrameExecStrategy", None), getattr(_EVAL, "set_code_exec_strategy", None)
    if strategy is not None and choose is not None:
        skip = _EVAL._FrameAction.SKIP
        choose(shell.__code__, strategy(skip, skip))
    functools.update_wrapper(shell, action)
    shell._torchdynamo_disable = True  # type: ignore[attr-defined]
    return shell

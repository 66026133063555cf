"""The fullest moment of a step: the start of an outermost backward, when all that it needs is alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class BeforeBackward:
    """Calls `action` before each outermost backward, from `install` to `remove`."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self._depth = 0
        self._run: Callable[..., Any] | None = None

    def install(self) -> None:
        run = self._run = torch.autograd._engine_run_backward

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            if self._depth == 0:
                self.action()
            self._depth += 1
            try:
                return run(*args, **kwargs)
            finally:
                self._depth -= 1

        torch.autograd._engine_run_backward = run_backward

    def remove(self) -> None:
        if self._run is not None:
            torch.autograd._engine_run_backward = self._run
            self._run = None

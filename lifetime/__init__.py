"""Who keeps this tensor alive, and may I let go of it?

`lint`, `trace`, `who`, `step` and `Report` are imported on first use, so that `import lifetime` costs nothing and never
imports torch by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "lint", "step", "trace", "who"]

if TYPE_CHECKING:
    from lifetime.heap.model import Report
    from lifetime.linter.engine import lint
    from lifetime.tracer.api import step, trace, who

_HOMES = {
    "Report": "lifetime.heap.model",
    "lint": "lifetime.linter.engine",
    "step": "lifetime.tracer.api",
    "trace": "lifetime.tracer.api",
    "who": "lifetime.tracer.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lifetime' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext lifetime` calls."""
    import_module("lifetime.notebook").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext lifetime` calls."""
    import_module("lifetime.notebook").unload(shell)

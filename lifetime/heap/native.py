"""Holders that gc does not track and owners in C++ without any Python object: the dearer readers."""

from __future__ import annotations

from typing import Any


def release(holder: Any, name: str, target: int) -> bool:
    """Let go of what a C++ holder owns, where an API does that; False where there is none."""
    return False

"""Golden files: what a form looks like as a whole. `LIFETIME_GOLDEN=write pytest tests/report` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "fixtures" / "golden"


def check(name: str, got: bytes) -> None:
    target = FOLDER / name
    if os.environ.get("LIFETIME_GOLDEN") == "write":
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(got)
    assert got.decode().splitlines() == target.read_text(encoding="utf-8").splitlines()

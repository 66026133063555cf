"""One of how many: what torchrun tells each process."""

from __future__ import annotations

import os
from pathlib import Path


def rank() -> int:
    return _number("RANK", 0)


def world_size() -> int:
    return max(1, _number("WORLD_SIZE", 1))


def own_file(output: str) -> str:
    """`output` itself in a run of one process; `OUTPUT/rank-00003.json` (the folder is made) in a run of many."""
    if world_size() == 1:
        return output
    Path(output).mkdir(parents=True, exist_ok=True)
    return str(Path(output) / f"rank-{rank():05d}.json")


def own_picture(picture: str) -> str:
    """`graph.svg`, or `graph-00003.svg` in a run of many, so that ranks do not overwrite each other's."""
    path = Path(picture)
    return picture if world_size() == 1 else str(path.with_name(f"{path.stem}-{rank():05d}{path.suffix}"))


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else default

"""The versions that the tracer was run on, each with all known leaking and healthy programs. Others may work; nobody has looked."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Ran:
    """`lacks` is what a report goes without there, empty where that is nothing."""

    python: str
    torch: str
    lacks: str = ""


_UNCOUNTED = "counted owners"
TESTED = (
    Ran("3.10", "2.13", "temporaries of running functions"),
    Ran("3.11", "2.4", _UNCOUNTED),
    Ran("3.11", "2.9", _UNCOUNTED),
    Ran("3.11", "2.13"),
    Ran("3.11", "2.14"),
    Ran("3.12", "2.13"),
    Ran("3.13", "2.13"),
)


def here() -> str:
    """Whether the versions installed here are among them, in a sentence."""
    python, installed = minor(sys.version.split()[0]), minor(str(torch.__version__))
    found = next((one for one in TESTED if (one.python, one.torch) == (python, installed)), None)
    if found is None:
        return f"not on Python {python} with torch {installed}"
    return f"yes; reports lack {found.lacks}" if found.lacks else "yes"


def minor(version: str) -> str:
    """
    >>> minor("2.13.0+cu130"), minor("3.14.0rc2")
    ('2.13', '3.14')
    """
    return ".".join(version.split(".")[:2])


def table() -> str:
    """In Markdown, for the README."""
    rows = [f"| {one.python} | {one.torch} | {one.lacks or '-'} |" for one in TESTED]
    return "\n".join(["| Python | torch | reports lack |", "| --- | --- | --- |", *rows])

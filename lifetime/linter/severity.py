"""How much a finding matters. Apart from `model`, so that what needs no finding need not import it."""

from __future__ import annotations

from enum import Enum


class Severity(str, Enum):
    """The most severe first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

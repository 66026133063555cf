"""`lifetime lint --why PATH:LINE`: why there is a finding on a line, or why there is none."""

from __future__ import annotations

from lifetime.config import Resolver


def why(place: str, resolver: Resolver) -> int:
    raise NotImplementedError

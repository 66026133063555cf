"""`lifetime doctor`: what can be seen on this machine, tried one by one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from lifetime import __version__
from lifetime.errors import LifetimeError

_WIDTH = 32


def run(argv: Sequence[str]) -> int:
    """0 where all that a trace needs is there, 1 where something is missing (a CUDA device is not needed)."""
    argparse.ArgumentParser("lifetime doctor", description="Say what can be seen on this machine.").parse_args(argv)
    if find_spec("torch") is None:
        raise LifetimeError("torch is not installed: lint works, trace does not", "pip install 'torch-lifetime[trace]'")
    from lifetime.tracer import tested
    from lifetime.tracer.private import probes, versions

    found = probes()
    for name, value in [("lifetime", __version__), *versions(), ("tested", tested.here()), *_pictures()]:
        print(f"  {name:<{_WIDTH}}{value}")
    for probe in found:
        print(f"{'  ' if probe.why is None else '! '}{probe.name:<{_WIDTH}}{probe.why or probe.needed_for}")
        if probe.why:
            print(f"  {'':<{_WIDTH}}without it: {probe.needed_for}")
    return int(any(probe.why for probe in found if probe.name != "CUDA"))


def _pictures() -> Iterator[tuple[str, str]]:
    from lifetime.report.engines import find

    try:
        engine = find()
        yield "pictures", engine.label
    except LifetimeError as error:
        yield "pictures", error.message

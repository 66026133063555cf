"""pytest: the fixture `lifetime_trace`, and `@pytest.mark.no_survivors` for tests after which no new tensor may be alive."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lifetime.tracer.api import trace

MARK = "no_survivors"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: no tensor that the test makes may outlive it (needs torch)")


@pytest.fixture
def lifetime_trace() -> Iterator[trace]:
    """A trace around the test: call `lifetime_trace.step()` after each step, then `lifetime_trace.finish()` for the report."""
    from lifetime.tracer.api import trace

    with trace(show=False) as traced:
        yield traced


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    if pyfuncitem.get_closest_marker(MARK) is None:
        return (yield)
    from lifetime.errors import LifetimeError
    from lifetime.report.text import survivor_text
    from lifetime.tracer.heap import Baseline

    before = Baseline()
    answer = yield
    try:
        survivors = before.survivors()
    except LifetimeError as error:
        pytest.fail(f"{MARK}: {error}", pytrace=False)
    if survivors:
        told = ["\n".join(survivor_text(one, number, len(survivors))) for number, one in enumerate(survivors, 1)]
        pytest.fail("tensors outlive the test\n\n" + "\n\n".join(told), pytrace=False)
    return answer

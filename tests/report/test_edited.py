"""Reports that somebody edited: refused in a sentence, or drawn in every form; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifetime.errors import ReportError
from lifetime.report.compare import compared
from lifetime.report.ranks import merged
from lifetime.report.records import from_json, to_json
from lifetime.report.render import TEXTS, render
from tests.report.samples import rich_report

SOUND = to_json(rich_report())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([-1, 0, 10**25, "growing", "global"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=3,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with one of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


COUNT = sum(1 for _ in places(json.loads(SOUND)))


def all_forms(text: str) -> None:
    try:
        report = from_json(text)
    except ReportError as error:
        assert len(str(error)) < 400
        return
    for ending in sorted(TEXTS):
        render(report, ending)
    render(report, ".svg", "builtin")
    render(compared(rich_report(), report), ".md")
    render(merged([report]), ".txt")


def edited(place: int, value: Any) -> str:
    data = json.loads(SOUND)
    container, key = list(places(data))[place]
    if value is KeyError:
        del container[key]
    else:
        container[key] = value
    return json.dumps(data)


@given(st.integers(0, COUNT - 1), VALUES | st.just(KeyError))
@settings(max_examples=150, deadline=None)
def test_one_value_edited(place: int, value: Any) -> None:
    all_forms(edited(place, value))


@pytest.mark.slow
@given(st.integers(0, COUNT - 1), VALUES | st.just(KeyError))
@settings(max_examples=5000, deadline=None)
def test_one_value_edited_at_length(place: int, value: Any) -> None:
    all_forms(edited(place, value))


@given(st.binary(max_size=60) | st.integers(0, len(SOUND)).map(lambda end: SOUND.encode()[:end]))
def test_any_bytes(data: bytes) -> None:
    all_forms(data.decode("utf-8", "replace"))

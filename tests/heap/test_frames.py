"""Running frames of whatever CPython runs the suite: each sort of variable is found, nothing kept alive, a wrong layout noticed."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from collections.abc import Iterator

import pytest

from lifetime.heap import frames

FROM_310_TO_313 = (3, 10) <= sys.version_info[:2] <= (3, 13)
pytestmark = pytest.mark.skipif(not FROM_310_TO_313, reason="no layout is known for this Python")


class Thing:
    """Can be referred to weakly."""


def seen(frame: types.FrameType) -> dict[str, int]:
    return dict(frames.slots(frame))


def test_the_layout_of_this_interpreter_is_right() -> None:
    assert frames.supported()


def test_arguments_of_every_sort() -> None:
    one, many, named = Thing(), Thing(), Thing()

    def function(first: Thing, *rest: Thing, by_name: Thing, **others: Thing) -> None:
        slots = seen(sys._getframe())
        assert (slots["first"], slots["by_name"]) == (id(one), id(named))
        assert (slots["rest"], slots["others"]) == (id(rest), id(others))

    function(one, many, by_name=named, other=many)


def test_variables_that_closures_share_are_cells() -> None:
    def function(argument: Thing) -> None:
        local, unset = Thing(), Thing()
        del unset

        def inner() -> object:
            return argument, local

        cells = dict(zip(inner.__code__.co_freevars, map(id, inner.__closure__ or ()), strict=True))
        slots = seen(sys._getframe())
        assert {name: slots[name] for name in cells} == cells
        assert slots["inner"] == id(inner) and "unset" not in slots

    function(Thing())


def test_a_free_variable_is_the_cell_of_the_outer_function() -> None:
    outer = Thing()

    def function() -> int:
        assert outer is not None
        return seen(sys._getframe())["outer"]

    assert function() == id((function.__closure__ or ())[function.__code__.co_freevars.index("outer")])


@pytest.mark.parametrize("kind", ["suspended", "running"])
def test_a_generator(kind: str) -> None:
    def generate() -> Iterator[dict[str, int]]:
        kept = Thing()
        yield {"": id(kept)}
        yield seen(sys._getframe())

    generator = generate()
    address = next(generator)[""]
    slots = next(generator) if kind == "running" else seen(generator.gi_frame)  # type: ignore[attr-defined]
    assert slots["kept"] == address


def test_a_function_that_raised() -> None:
    def function() -> None:
        kept = Thing()
        raise KeyError(kept)

    with pytest.raises(KeyError) as error:
        function()
    assert seen(error.tb.tb_next.tb_frame)["kept"] == id(error.value.args[0])  # type: ignore[union-attr]


def test_functions_of_other_threads() -> None:
    ready, done = threading.Event(), threading.Event()
    addresses = []

    def work() -> None:
        kept = Thing()
        addresses.append(id(kept))
        ready.set()
        done.wait()

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    ready.wait()
    found = [dict(one.slots) for one in frames.running() if one.thread == "worker" and one.where.startswith(__file__)]
    done.set()
    thread.join()
    assert [one["kept"] for one in found] == addresses


def test_a_look_keeps_no_variable_alive() -> None:
    local, shared = Thing(), Thing()
    references = [weakref.ref(local), weakref.ref(shared)]

    def inner() -> Thing:
        return shared

    before = sys.getrefcount(local), sys.getrefcount(inner)
    mine = [dict(one.slots) for one in frames.running() if one.function.endswith("test_a_look_keeps_no_variable_alive")]
    assert [one["local"] for one in mine] == [id(local)] and seen(sys._getframe())["local"] == id(local)
    assert (sys.getrefcount(local), sys.getrefcount(inner)) == before
    local = shared = Thing()
    assert [reference() for reference in references] == [None, None]
    assert inner() is local


def test_no_running_function_shows_up_as_a_referrer() -> None:
    """What the reader is for. (A generator of 3.10 does show up: there its frame is an object of its own.)"""
    local = Thing()
    assert not [one for one in gc.get_referrers(local) if type(one) is types.FrameType]


def test_temporaries_are_seen_or_said_to_be_hidden() -> None:
    def look(_: object = None) -> list[int]:
        caller = frames.slots(sys._getframe(1))
        return [address for name, address in caller if name == frames.STACK]

    temporary, found = (Thing(), look())
    if sys.version_info >= (3, 11):
        assert found == [id(temporary)] and frames.what_is_hidden() is None
    else:
        assert found == [] and "temporaries" in (frames.what_is_hidden() or "")


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if the layout had not been tried yet."""
    monkeypatch.setattr(frames, "_works", None)
    return monkeypatch


@pytest.mark.parametrize("offset", [-16, -8, 8])
def test_variables_that_lie_elsewhere_are_not_read(untried: pytest.MonkeyPatch, offset: int) -> None:
    known = frames.layout()
    assert known is not None
    moved = frames.Layout(known.inner, known.variables + offset, known.top, known.cells_of_arguments)
    untried.setattr(frames, "LAYOUTS", {sys.version_info[:2]: moved})
    assert not frames.supported()
    assert frames.running() == () and frames.slots(sys._getframe()) == []
    assert "cannot be read" in (frames.what_is_hidden() or "")


def test_an_interpreter_without_a_layout_is_not_read(untried: pytest.MonkeyPatch) -> None:
    untried.setattr(frames, "LAYOUTS", {})
    assert not frames.supported() and "cannot be read" in (frames.what_is_hidden() or "")


def test_a_build_with_more_in_each_object_has_no_layout(untried: pytest.MonkeyPatch) -> None:
    untried.setattr(frames, "WORD", 4)
    assert frames.layout() is None and not frames.supported()

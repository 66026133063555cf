"""The tracer in hand: `lifetime.trace`, `lifetime.step`, `lifetime.who`, and the pytest plugin. One process, one torch."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import lifetime
from lifetime.errors import CaptureError, UsageError
from lifetime.heap.capture import Look, Pending
from lifetime.heap.model import Gap, Proof, RootKind, Verdict
from lifetime.tracer import probe

pytest_plugins = ["pytester"]
KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Any:
    # This process holds what all tests before left in it, and other workers share the machine: a fork may take long here.
    monkeypatch.setattr("lifetime.tracer.heap.LONG_PAUSE_S", float("inf"))
    KEPT.clear()
    hooks, leave, thresholds = list(sys.meta_path), os._exit, gc.get_threshold()
    yield
    KEPT.clear()
    assert (sys.meta_path, os._exit, gc.get_threshold()) == (hooks, leave, thresholds)
    assert probe.on_step is None and probe.on_mark is None and probe.on_watch is None
    assert "grad" not in vars(torch.Tensor)


@pytest.fixture
def collected_only_when_asked() -> Any:
    """Automatic collection is on and due far later, whatever else the tests of this process have allocated."""
    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, *before[1:])
    yield
    gc.set_threshold(*before)


def test_a_block_and_explicit_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with lifetime.trace() as traced:
        for n in range(8):
            KEPT.append(torch.full((3, 5), float(n)))
            lifetime.step()
    report = traced.report
    assert report is not None and [step.index for step in report.steps] == list(range(7))
    (leak,) = [one for one in report.survivors if one.verdict is Verdict.GROWING]
    assert leak.tensor.shape == (3, 5) and "KEPT" in (leak.chain.expression or "") and leak.cut.proof is Proof.PROVED
    assert leak.bytes_per_step == 60
    out, err = capsys.readouterr()
    assert not out and "GROWING" in err and "KEPT" in err


def test_a_function_and_the_steps_of_its_optimizer() -> None:
    traced = lifetime.trace(show=False, gc="off")

    @traced
    def train() -> int:
        model = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(9):  # one more than needed: an optimizer of another test module is waited for once
            loss = model(torch.ones(2, 3)).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return len(losses)

    assert train() == 9
    assert traced.report is not None and len(traced.report.steps) == 7
    growing = [one for one in traced.report.survivors if one.verdict is Verdict.GROWING]
    assert growing and all("losses" in str(one.chain) for one in growing)


def test_a_healthy_loop_has_nothing() -> None:
    with lifetime.trace(show=False) as traced:
        for n in range(8):
            torch.full((3, 5), float(n)).sum()
            traced.step()
    assert traced.report is not None and traced.report.survivors == ()


def test_few_steps_are_judged_and_it_says_so() -> None:
    with lifetime.trace(show=False) as traced:
        for _ in range(3):
            KEPT.append(torch.ones(2))
            traced.step()
    assert traced.report is not None and len(traced.report.steps) == 3
    assert "2 of 6 steps after warm-up were seen; growing needs at least 4" in [gap.why for gap in traced.report.gaps]


def test_a_step_of_a_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "stepping.py").write_text("import torch\nL = []\ndef step():\n    L.append(torch.ones(2))\n")
    monkeypatch.syspath_prepend(tmp_path)
    with lifetime.trace(step="stepping:step", show=False) as traced:
        import stepping  # type: ignore[import-not-found]

        for _ in range(8):
            stepping.step()
    assert traced.report is not None and [one.verdict for one in traced.report.survivors] == [Verdict.GROWING]


def test_an_error_inside_passes_through_and_the_report_is_there() -> None:
    traced = lifetime.trace(show=False)
    with pytest.raises(ZeroDivisionError), traced:
        for _ in range(6):
            KEPT.append(torch.ones(2))
            lifetime.step()
        _ = 1 / 0
    assert traced.report is not None and [one.verdict for one in traced.report.survivors] == [Verdict.GROWING]


@pytest.mark.parametrize(("step", "gc_mode"), [("step", "as-is"), ("a b", "as-is"), (None, "never")])
def test_what_cannot_be_traced_is_refused(step: str | None, gc_mode: str) -> None:
    with pytest.raises(UsageError):
        lifetime.trace(step=step, gc=gc_mode)


@pytest.mark.usefixtures("collected_only_when_asked")
def test_a_cycle_that_gc_takes_in_the_run_is_told_all_the_same() -> None:
    class Node:
        pass

    def step() -> None:
        node = Node()
        node.me, node.tensor = node, torch.ones(7, 3)  # type: ignore[attr-defined]

    with lifetime.trace(show=False, steps=8) as traced:
        for n in range(10):
            step()
            lifetime.step()
            if n in {4, 8}:
                gc.collect()
    assert traced.report is not None
    cycles = [one for one in traced.report.survivors if one.tensor.shape == (7, 3)]
    assert [one.verdict for one in cycles] == [Verdict.UNTIL_GC]
    assert cycles[0].chain.root.kind is RootKind.REFERENCE_CYCLE


@pytest.mark.usefixtures("collected_only_when_asked")
@pytest.mark.parametrize("collected_after", [3, 5])
def test_a_collection_late_in_the_run_hides_no_leak(collected_after: int) -> None:
    class Node:
        pass

    with lifetime.trace(show=False) as traced:
        for n in range(7):
            node = Node()
            node.me, node.tensor = node, torch.ones(7, 3)  # type: ignore[attr-defined]
            del node
            KEPT.append(torch.ones(5))
            lifetime.step()
            if n == collected_after:
                gc.collect()
    assert traced.report is not None
    found = {one.tensor.shape: one.verdict for one in traced.report.survivors}
    assert found == {(5,): Verdict.GROWING, (7, 3): Verdict.UNTIL_GC}


@pytest.mark.usefixtures("collected_only_when_asked")
def test_a_collection_just_before_the_last_look_hides_no_leak() -> None:
    class Node:
        pass

    with lifetime.trace(show=False) as traced:
        for n in range(7):
            node = Node()
            node.me, node.tensor = node, torch.ones(7, 3)  # type: ignore[attr-defined]
            del node
            if n == 6:
                gc.collect()
            lifetime.step()
    assert traced.report is not None
    assert [(one.tensor.shape, one.verdict) for one in traced.report.survivors] == [((7, 3), Verdict.UNTIL_GC)]


def test_where_a_fork_takes_long_few_boundaries_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifetime.tracer.heap.LONG_PAUSE_S", -1.0)
    with lifetime.trace(show=False) as traced:
        for _ in range(6):
            KEPT.append(torch.ones(5))
            lifetime.step()
    assert traced.report is not None and [one.count for one in traced.report.survivors] == [4]
    assert "the survivors are those of step 4: a look takes long here" in [gap.why for gap in traced.report.gaps]


def test_who_holds_it(capsys: pytest.CaptureFixture[str]) -> None:
    KEPT.append({"k": torch.ones(2, 9)})
    found = lifetime.who(KEPT[0]["k"])
    assert found is not None and "KEPT[0]['k']" in (found.chain.expression or "") and found.cut.proof is Proof.PROVED
    assert "['k']" in capsys.readouterr().out


def test_who_holds_a_temporary_is_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    found = lifetime.who(torch.ones(2))  # inside `assert` pytest would hold it
    assert found is None
    assert capsys.readouterr().out == "nobody else holds it\n"


def test_who_holds_what_only_a_graph_holds() -> None:
    weight = torch.ones(4, requires_grad=True)
    KEPT.append((weight * torch.full((4,), 2.0)).sum())
    saved = KEPT[0].grad_fn.next_functions[0][0]._saved_other
    found = lifetime.who(saved, show=False)
    assert found is not None
    del saved
    again = lifetime.who(KEPT[0].grad_fn.next_functions[0][0]._saved_other, show=False)
    assert again is not None and any(link.kind == "grad_fn" for link in again.chain.links)


def test_the_pytest_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest, torch
        KEPT = []

        @pytest.fixture
        def given():
            return torch.ones(5)

        @pytest.mark.no_survivors
        def test_clean(given):
            assert torch.ones(3).sum() + given.sum() == 8

        @pytest.mark.no_survivors
        def test_keeps():
            KEPT.append(torch.ones(2, 11))

        @pytest.mark.no_survivors
        def test_fails_by_itself():
            KEPT.append(torch.ones(2, 11))
            assert False, "its own failure"

        def test_not_marked():
            KEPT.append(torch.ones(2))

        def test_growth(lifetime_trace):
            for _ in range(7):
                KEPT.append(torch.ones(4))
                lifetime_trace.step()
            assert [one.verdict.value for one in lifetime_trace.finish().survivors] == ["growing"]
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-n", "0")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*tensors outlive the test*", "*KEPT*", "*its own failure*"])


def test_where_the_heap_cannot_be_looked_at_nothing_is_said_to_be_well(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, unseen = torch.ones(2), Look(gaps=(Gap("capture", "deadline: no answer in 30.0 s"),))
    monkeypatch.setattr("lifetime.tracer.heap.look", lambda *_, **__: Pending(None, 0.0, unseen))
    with pytest.raises(CaptureError, match="could not be looked at: deadline"):
        lifetime.who(kept)
    pytester.makepyfile(
        """
        import pytest, torch
        KEPT = []

        @pytest.mark.no_survivors
        def test_keeps():
            KEPT.append(torch.ones(2, 11))
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-n", "0")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no_survivors: the heap could not be looked at: deadline*"])

"""What every form says alike: second holders, items told as one, a loop's own variables in a line, questions that judge nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lifetime.heap.model import Chain, Cut, Leaking, Link, Proof, Report, Root, RootKind, Survivor, TensorFacts, Verdict
from lifetime.report.html import view_html
from lifetime.report.markdown import view_markdown
from lifetime.report.mermaid import picture_mermaid
from lifetime.report.picture import picture
from lifetime.report.records import from_json, to_json
from lifetime.report.text import report_text, survivor_text
from lifetime.report.view import View
from lifetime.report.words import cut_text
from tests.report.samples import report, survivor

SECOND = "net._forward_hooks[1].__closure__[0].cell_contents"


def held_twice() -> Survivor:
    one = survivor()
    return replace(one, cut=Cut(1, "[0]", one.bytes, Proof.PROVED, "with 1 more reference: Net._forward_hooks", 6, (SECOND,)))


def variables(function: str = "main", *others: str) -> Survivor:
    frame = Link(function, "frame", ".loss", "local", "train.py:9", Leaking.NO, "the function is running")
    chain = Chain(Root(RootKind.LOCAL, f"{function}.loss", "train.py:9"), (frame,))
    one = replace(survivor("beef0009", 520, Verdict.LINGERING), count=1 + len(others), bytes=520, chain=chain)
    return replace(one, cut=Cut(0, ".loss", 520, Proof.PROVED, None, 1, others))


def text(whole: Report) -> str:
    return "\n".join(report_text(whole))


def forms(one: Survivor) -> list[tuple[str, str]]:
    view = View(report(one))
    drawn = picture_mermaid(picture(view))
    return [("text", text(view.report)), ("markdown", view_markdown(view)), ("html", view_html(view)), ("mermaid", drawn)]


@pytest.mark.parametrize(("form", "told"), forms(held_twice()), ids=lambda value: value if len(value) < 20 else "")
def test_every_form_says_that_more_than_one_reference_had_to_go(form: str, told: str) -> None:
    assert "with 1 more reference" in told and "_forward_hooks" in told, form


def test_many_items_are_told_as_one_with_their_number() -> None:
    assert cut_text(held_twice()).startswith("[*] of 6 frees 15.4 KiB (proved: with 1 more reference: ")
    assert cut_text(survivor()).startswith(".grad_fn frees 15.4 KiB (proved)")


def test_a_loops_own_variables_are_a_line_without_a_tree() -> None:
    told = text(report(survivor(), variables("main", "main.norm", "Trainer.step.y")))
    assert told.splitlines()[-3] == (
        "2 of 2  LINGERING  520 B: own variables of main: loss, norm; Trainer.step: y; rebound by the next step (beef0009)"
    )
    assert told.count("┬───") == 1


def test_a_loops_own_variables_are_not_leaking_where_their_chain_is_shown() -> None:
    shown = "\n".join(survivor_text(variables()))
    assert "Leaking: NO (rebound by the next step)" in shown and "YES" not in shown


def test_a_container_that_a_loop_holds_keeps_its_tree() -> None:
    cache = variables()
    links = (*cache.chain.links, Link("Cache", "train.Cache", ".last", "attribute"))
    kept = replace(cache, chain=replace(cache.chain, links=links), cut=replace(cache.cut, link=1, reference=".last"))
    assert "┬───" in text(report(kept))


def test_who_holds_it_is_no_accusation() -> None:
    shown = "\n".join(survivor_text(replace(survivor("beef000a", 64, Verdict.LINGERING), judged=False)))
    assert "HELD" in shown and "outlived" not in shown and "LINGERING" not in shown


def test_a_small_view_of_a_large_storage() -> None:
    scalar = replace(survivor(), tensor=TensorFacts("Tensor", (), "float32", "cpu", 512))
    assert "scalar float32 cpu 4 B in a storage of 512 B" in "\n".join(survivor_text(scalar))


def test_reports_of_before_are_read() -> None:
    data = json.loads(to_json(report(held_twice())))
    del data["survivors"][0]["judged"], data["survivors"][0]["cut"]["also"], data["survivors"][0]["cut"]["count"]
    (one,) = from_json(json.dumps(data)).survivors
    assert (one.judged, one.cut.count, one.cut.also) == (True, 1, ())


def test_a_loops_own_variables_are_no_leak_to_be_worked_on() -> None:
    view = View(report(survivor(), variables("main", "main.norm")))
    page, comment = view_html(view), view_markdown(view)
    folded = page[page.index('id="leak-beef0009"') :]
    assert folded.startswith('id="leak-beef0009" data-verdict="lingering"><summary>') and "Comment for the code" not in folded
    assert "own variables, rebound by the next step" in folded
    assert "| lingering (own variables) |" in comment and comment.count("<details>") == 1

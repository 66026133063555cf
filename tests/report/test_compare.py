"""Two reports: what is gone, new, grew; ranks merged, outliers named; the exit code of `render`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lifetime.cli import main
from lifetime.errors import ReportError
from lifetime.heap.model import Known, Report, SiteVerdict, Survivor, Verdict
from lifetime.report.compare import changes, compared, compared_views, regressions
from lifetime.report.ranks import merged
from lifetime.report.records import from_json, to_json
from lifetime.report.render import render
from tests.report.samples import report, survivor


def leak(name: str, a_step: int = 10, verdict: Verdict = Verdict.GROWING) -> Survivor:
    return survivor(name, a_step, verdict)


OLD = report(leak("same"), leak("worse"), leak("better", 50), leak("fixed"))
NEW = report(leak("worse", 30), leak("same"), leak("better", 5), leak("fresh"))


def test_changes_are_told_in_the_order_of_their_urgency() -> None:
    told = [(change.survivor.fingerprint, change.text) for change in changes(OLD, NEW)]
    assert told == [
        ("fresh", "new: 60 B"),
        ("worse", "grew: 10 B a step before, 30 B a step now"),
        ("better", "shrank: 50 B a step before, 5 B a step now"),
        ("same", "as before: 10 B a step"),
        ("fixed", "gone: was 60 B"),
    ]


def test_a_verdict_that_changed_is_told() -> None:
    (change,) = changes(report(leak("a", verdict=Verdict.UNTIL_GC)), report(leak("a")))
    assert change.text == "as before: 10 B a step; was until-gc"


def test_a_comparison_in_every_form() -> None:
    view = compared(OLD, NEW)
    counts = "1 new, 1 grew, 1 shrank, 1 same, 1 gone; 480 B held before, 330 B now"
    assert view.title == f"lifetime: compared with the older report: {counts}"
    assert "gone: was 60 B" in render(view, ".txt").decode()
    assert "GONE, WAS GROWING: 60 B in 6 storages" in render(view, ".svg", "builtin").decode()
    assert "| gone: was 60 B |" in render(view, ".md").decode()
    page = render(view, ".html").decode()
    assert "<strong>4 growing</strong>" in page, "what is gone is not counted among what is there"
    assert '<span class="badge gone">gone, was growing</span>' in page


def test_what_is_gone_is_no_finding_and_no_part_of_the_newer_report() -> None:
    view = compared(OLD, NEW)
    results = json.loads(render(view, ".sarif"))["runs"][0]["results"]
    states = {one["partialFingerprints"]["lifetimeLeak/v1"]: one["baselineState"] for one in results}
    assert states == {"fresh": "new", "worse": "updated", "better": "updated", "same": "unchanged"}
    assert {one.fingerprint for one in from_json(render(view, ".json").decode()).survivors} == set(states)


def test_only_new_and_grown_leaks_are_regressions() -> None:
    assert {s.fingerprint for s in regressions(OLD, NEW).survivors} == {"fresh", "worse"}
    assert regressions(NEW, NEW).survivors == () and regressions(NEW, NEW).sites == ()


def test_runs_that_differ_say_so() -> None:
    other = replace(NEW, environment=replace(NEW.environment, torch="2.12.0"), steps=NEW.steps[:3])
    assert compared(OLD, other).notes == (
        "The steps differ: 7 steps before, 3 steps now.",
        "The torch differs: 2.13.0 before, 2.12.0 now.",
    )


def rank(number: int, *survivors: Survivor, world: int = 4) -> Report:
    one = report(*survivors)
    return replace(one, environment=replace(one.environment, rank=number, world_size=world))


def test_ranks_fall_together_and_outliers_are_named() -> None:
    view = merged([rank(3, leak("a", 100)), rank(1, leak("a")), rank(0, leak("a"), leak("b")), rank(2, leak("a"))])
    assert [(s.fingerprint, s.bytes) for s in view.report.survivors] == [("a", 600), ("b", 60)]
    assert view.marks["a"].text == "on all 4 ranks; 780 B together; most on rank 3: 600 B, median 60 B"
    assert view.marks["b"].text == "only on rank 0; 60 B together"
    assert view.report.sites[0].hits == 24
    assert view.notes == ("4 ranks merged; bytes are those of the rank that holds most, steps those of rank 0.",)
    counted = {event["pid"] for event in json.loads(render(view, ".trace"))["traceEvents"] if event["ph"] == "C"}
    assert counted == {0, 1, 2, 3}, "a counter track for each rank"


def test_a_missing_rank_is_named_and_a_double_one_refused() -> None:
    assert "No report of ranks 1, 3: killed, or still running." in merged([rank(0), rank(2)]).notes
    with pytest.raises(ReportError, match="two reports of rank 2"):
        merged([rank(2), rank(2)])


def test_the_worst_verdict_of_any_rank_counts() -> None:
    waiting = replace(rank(0), sites=tuple(replace(s, verdict=SiteVerdict.REFUTED) for s in rank(0).sites))
    view = merged([replace(waiting, survivors=(leak("a", 90, Verdict.LINGERING),)), rank(1, leak("a", 5), world=2)])
    assert view.report.survivors[0].verdict is Verdict.GROWING and view.report.survivors[0].bytes == 540
    assert view.report.sites[0].verdict is SiteVerdict.CONFIRMED


def save(path: Path, one: Report) -> str:
    path.write_text(to_json(one))
    return str(path)


@pytest.mark.parametrize(
    ("survivors", "fail_on", "code"),
    [
        ((leak("a"),), "growing", 1),
        ((leak("a", verdict=Verdict.UNTIL_GC),), "growing", 1),
        ((leak("a", verdict=Verdict.LINGERING),), "growing", 0),
        ((leak("a", verdict=Verdict.LINGERING),), "confirmed", 1),
        ((replace(leak("a"), known=Known("x", "y", "z")),), "growing", 0),
        ((leak("a"),), "never", 0),
    ],
)
def test_exit_codes(tmp_path: Path, survivors: tuple[Survivor, ...], fail_on: str, code: int) -> None:
    path = save(tmp_path / "r.json", report(*survivors))
    assert main(["render", path, "-o", str(tmp_path / "r.txt"), "--fail-on", fail_on]) == code


def test_a_folder_of_ranks_decides_for_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "rank-00000.json", rank(0, leak("a", verdict=Verdict.LINGERING), world=2))
    save(tmp_path / "rank-00001.json", rank(1, leak("b"), world=2))
    assert main(["render", str(tmp_path), "--fail-on", "growing"]) == 1
    assert "only on rank 1; 60 B together" in capsys.readouterr().out


def test_the_older_report_is_the_baseline(tmp_path: Path) -> None:
    old, new = save(tmp_path / "old.json", OLD), save(tmp_path / "new.json", NEW)
    assert main(["render", old, new, "-o", str(tmp_path / "d.svg"), "--engine", "builtin", "--fail-on", "growing"]) == 1
    assert main(["render", new, new, "-o", str(tmp_path / "d.md"), "--fail-on", "confirmed"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["r.json", "-o", "no/folder/x.svg"], "cannot write no/folder/x.svg: No such file or directory"),
        (["r.json", "-o", "x.doc"], "cannot draw .doc"),
        (["r.json", "r.json", "r.json"], "3 reports"),
        (["none.json"], "cannot read none.json: No such file or directory"),
        (["empty"], "empty holds no rank-*.json"),
        (["torn.json"], "torn.json is not JSON"),
    ],
)
def test_one_sentence_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = to_json(report())
    Path("r.json").write_text(text)
    Path("torn.json").write_text(text[:-50])
    Path("empty").mkdir()
    assert main(["render", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"lifetime: {said}") and "Traceback" not in told and len(told.splitlines()) <= 2


def test_a_rank_that_is_missing_is_told_in_a_comparison_too() -> None:
    two = [replace(NEW, environment=replace(NEW.environment, rank=rank, world_size=2)) for rank in range(2)]
    told = compared_views(merged(two), merged(two[:1])).notes
    assert any(note.startswith("Newer: No report of rank 1") for note in told)
    assert not any(note.startswith("Older: No report") for note in told)

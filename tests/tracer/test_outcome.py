"""What a report makes of the exit code, and where it goes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lifetime.cli.trace_options import parser
from lifetime.cli.trace_outcome import Outcome
from lifetime.errors import LifetimeError, UsageError
from lifetime.heap.model import (
    Chain,
    Cut,
    Environment,
    GcState,
    Known,
    Link,
    Proof,
    Report,
    Root,
    RootKind,
    Site,
    SiteVerdict,
    Step,
    Survivor,
    TensorFacts,
    Verdict,
)
from lifetime.report.records import read, to_json

ENVIRONMENT = Environment("3.11.7", "2.13.0", "cpu", GcState(True, "off"), 0, 1, ("train.py",))
CHAIN = Chain(Root(RootKind.GLOBAL, "m"), (Link("m", "module", ".KEPT", "global"), Link("KEPT", "list", "[0]", "item")))


def survivor(verdict: Verdict, fingerprint: str = "a1", known: Known | None = None) -> Survivor:
    facts = TensorFacts("Tensor", (4,), "float32", "cpu", 16)
    return Survivor(fingerprint, verdict, 6, 1.0, 96, 16, facts, CHAIN, known, None, Cut(1, "[0]", 96, Proof.PROVED), "hint")


def report(*survivors: Survivor, sites: tuple[Site, ...] = (), steps: int = 7) -> Report:
    return Report(ENVIRONMENT, tuple(Step(n, 16) for n in range(steps)), sites, survivors)


def site(verdict: SiteVerdict) -> Site:
    return Site("LT001", "m.py", 3, "F.backward", 6, 0, verdict)


def code(seen: Report, *options: str) -> int:
    outcome = Outcome(parser().parse_args(options))
    outcome.deliver(seen, "")
    trace: Any = SimpleNamespace(session=SimpleNamespace(failure=None, seen=1), steps=SimpleNamespace(named=None, missing=""))
    return outcome.exit_code(trace, "train.py")


KNOWN = Known("pattern", "a library's cache", "pytorch#1")
CONFIRMED, REFUTED = site(SiteVerdict.CONFIRMED), site(SiteVerdict.REFUTED)


@pytest.mark.parametrize(
    ("seen", "options", "expected"),
    [
        (report(), (), 0),
        (report(survivor(Verdict.GROWING)), (), 1),
        (report(survivor(Verdict.UNTIL_GC)), (), 1),
        (report(survivor(Verdict.LINGERING)), (), 0),
        (report(survivor(Verdict.LINGERING)), ("--fail-on", "confirmed"), 0),
        (report(survivor(Verdict.GROWING)), ("--fail-on", "never"), 0),
        (report(survivor(Verdict.GROWING)), ("--fail-on", "confirmed"), 1),
        (report(survivor(Verdict.GROWING, known=KNOWN)), (), 0),
        (report(sites=(CONFIRMED,)), (), 0),
        (report(sites=(CONFIRMED,)), ("--fail-on", "confirmed"), 1),
        (report(sites=(REFUTED,)), ("--fail-on", "confirmed"), 0),
        (report(sites=(CONFIRMED,)), ("--fail-on", "never"), 0),
    ],
)
def test_exit_codes(seen: Report, options: tuple[str, ...], expected: int) -> None:
    assert code(seen, *options) == expected


def test_accepted_survivors_do_not_fail(tmp_path: Path) -> None:
    baseline = tmp_path / "base.json"
    baseline.write_text(to_json(report(survivor(Verdict.GROWING, "a1"))))
    assert code(report(survivor(Verdict.GROWING, "a1")), "--baseline", str(baseline)) == 0
    assert code(report(survivor(Verdict.GROWING, "a1"), survivor(Verdict.GROWING, "b2")), "--baseline", str(baseline)) == 1


def test_one_step_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(UsageError, match="too few to compare"):
        code(report(steps=1))


def test_the_report_is_written_whole_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "r.json"
    seen = report(survivor(Verdict.GROWING))
    assert code(seen, "-o", str(target), "--format", "json") == 1
    assert read(target) == seen and capsys.readouterr() == ("", "")
    assert code(seen, "-o", str(target)) == 1
    out, err = capsys.readouterr()
    assert not out and "GROWING" in err


def test_pictures_by_their_ending(tmp_path: Path) -> None:
    names = ["g.svg", "g.dot", "g.txt"]
    code(report(survivor(Verdict.GROWING)), *(part for name in names for part in ("--render", str(tmp_path / name))))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert b"<svg" in (tmp_path / "g.svg").read_bytes()


def test_a_form_that_nobody_draws_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot draw .unknown"):
        Outcome(parser().parse_args(["--render", str(tmp_path / "g.unknown")]))


def test_what_cannot_be_written_is_said_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "r.json").mkdir()
    with pytest.raises(LifetimeError, match="cannot write"):
        code(report(), "-o", str(tmp_path / "r.json"))


def test_many_ranks_add_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    seen = replace(report(survivor(Verdict.GROWING)), environment=replace(ENVIRONMENT, rank=1, world_size=2))
    assert code(seen, "-o", str(tmp_path / "report")) == 0
    assert code(report(steps=0)) == 0
    written = tmp_path / "report" / "rank-00001.json"
    assert json.loads(written.read_text())["environment"]["rank"] == 1

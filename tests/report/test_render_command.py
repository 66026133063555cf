"""`lifetime render` as a user meets it: what is wrong is said before there is any work, in one sentence, with exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lifetime.cli import main
from lifetime.heap.model import Gap
from lifetime.report import leak_sarif
from lifetime.report.leak_sarif import view_sarif
from lifetime.report.records import to_json
from lifetime.report.view import View
from tests.report.samples import many, report


@pytest.fixture
def given(tmp_path: Path) -> str:
    (tmp_path / "r.json").write_text(to_json(report()))
    return str(tmp_path / "r.json")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["render", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("lifetime: ") and "Traceback" not in err
    return err


def test_no_file_is_written_where_one_cannot_be(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.svg"
    assert "cannot draw .foo" in refused(capsys, given, "-o", str(good), "-o", str(tmp_path / "bad.foo"))
    assert not good.exists()
    assert "No such file" in refused(capsys, given, "-o", str(tmp_path / "none" / "x.svg"))


def test_three_reports_are_too_many_whatever_they_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 reports" in refused(capsys, "a.json", "b.json", "c.json")


def test_what_is_wrong_with_a_report_is_told_with_its_place(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = json.loads(Path(given).read_text())
    value["survivors"][0]["bytes"] = "12"
    Path(given).write_text(json.dumps(value))
    assert f"{given}: report.survivors[0].bytes is not a number" in refused(capsys, given)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_file_system_is_one_sentence(given: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "lifetime", "render", given], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2 and done.stderr == b"lifetime: the output could not be written: No space left on device\n"


def test_sarif_says_what_could_not_be_seen_and_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leak_sarif, "MOST_RESULTS", 3)
    (run,) = json.loads(view_sarif(View(replace(many(5), gaps=(Gap("frames", "cannot be read"),)))))["runs"]
    told = [note["message"]["text"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == ["frames: cannot be read", "2 more survivors left out"] and len(run["results"]) == 3

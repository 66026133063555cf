"""Every form of one rich report, whole, against its golden file; and what the forms promise beside their looks."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from lifetime.errors import LifetimeError, UsageError
from lifetime.heap.model import Gap
from lifetime.report import engines
from lifetime.report.render import PICTURES, TEXTS, render, render_to
from tests.report import golden
from tests.report.samples import many, report, rich_report, survivor

PURE = "0.2.2"
"""The embedded engine's version that drew the golden picture."""


@pytest.mark.parametrize("ending", sorted(TEXTS))
def test_text_forms(ending: str) -> None:
    golden.check(f"report{ending}", render(rich_report(), ending))


def test_the_built_in_picture() -> None:
    golden.check("report.builtin.svg", render(rich_report(), ".svg", "builtin"))


def embedded() -> engines.Engine:
    engine = engines.find("pure")
    if engine.name != "pure" or engine.version != PURE:
        pytest.skip(f"needs graphviz-pure {PURE}, here is {engine.label}")
    return engine


def test_the_embedded_engine_s_picture() -> None:
    embedded()
    golden.check("report.pure.svg", render(rich_report(), ".svg", "pure"))


@pytest.mark.parametrize("engine", ["builtin", "pure"])
def test_a_picture_is_the_same_twice_and_speaks(engine: str) -> None:
    first, second = (render(rich_report(), ".svg", engine) for _ in range(2))
    assert first == second
    root = ElementTree.fromstring(first)
    texts = [child.tag.rpartition("}")[2] for child in root]
    assert root.get("role") == "img" and texts[:3] == ["title", "desc", "style"]
    assert "Cut: .out would free 12.0 MiB" in (root[1].text or "")
    assert f"drawn by {engines.find(engine).label}" in first.decode()


def test_cards_come_in_the_order_of_the_report() -> None:
    """Worst first, row by row; the embedded engine packs cards that have no order of their own by size."""
    embedded()
    drawn = render(many(12), ".svg", "pure").decode()
    places = re.findall(r'x="([\d.-]+)" y="([\d.-]+)"[^>]*>fingerprint (\w+)<', drawn)
    down = sorted(places, key=lambda place: float(place[1]))
    rows = [sorted(down[k : k + 2], key=lambda place: float(place[0])) for k in range(0, 12, 2)]
    assert [name for row in rows for _, _, name in row] == [f"{k:08x}" for k in range(12)]


def test_a_png_says_who_drew_it() -> None:
    engine = embedded()
    data = render(report(), ".png", "pure")
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and b"tEXtSoftware\0lifetime" in data and engine.label.encode() in data
    at = 8
    while at < len(data):  # chunks must still line up to the end
        (length,) = struct.unpack_from(">I", data, at)
        at += 12 + length
    assert at == len(data)


def test_what_no_engine_here_writes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_system_dot", lambda: "")
    with pytest.raises(UsageError, match=r"no layout engine here writes \.pdf"):
        render(report(), ".pdf")
    with pytest.raises(UsageError, match="cannot draw .doc"):
        render(report(), ".doc")


def test_a_missing_engine_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engines, "_system_dot", lambda: "")
    monkeypatch.setattr(engines, "_embedded", lambda: "")
    assert render_to(report(), tmp_path / "g.svg", "dot") == "drawn by builtin: dot is not installed"
    assert "drawn by builtin" in (tmp_path / "g.svg").read_text()
    assert render_to(report(), tmp_path / "g.svg", "auto") == ""


def test_a_broken_engine_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken-dot"
    broken.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("LIFETIME_DOT", str(broken))
    assert render_to(report(), tmp_path / "g.svg", "auto") == "drawn by builtin: dot cannot write svg: no memory"
    assert "drawn by builtin" in (tmp_path / "g.svg").read_text()
    with pytest.raises(LifetimeError, match="dot cannot write pdf: no memory"):
        render_to(report(), tmp_path / "g.pdf")
    embedded()
    assert render_to(report(), tmp_path / "g.png") == "drawn by pure: dot cannot write png: no memory"


def test_an_engine_that_is_named_and_not_there_is_said_not_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LIFETIME_DOT", str(tmp_path / "no-such-dot"))
    monkeypatch.setattr(engines, "_embedded", lambda: "")
    for asked in ("dot", "auto"):
        note = render_to(report(), tmp_path / "g.svg", asked)
        assert note.startswith("drawn by builtin: cannot run") and "no-such-dot" in note
    with pytest.raises(UsageError, match="no-such-dot, which LIFETIME_DOT names"):
        render_to(report(), tmp_path / "g.pdf")


def test_dot_is_what_graphviz_reads() -> None:
    embedded()
    dot = render(rich_report(), ".dot").decode()
    done = subprocess.run([engines.find("pure").program, "-Tsvg"], input=dot.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0 and b"</svg>" in done.stdout


def test_300_survivors_stay_small_and_name_the_rest() -> None:
    page = render(many(300), ".html")
    assert len(page) < 2_000_000 and page.count(b'<details class="leak') == 300
    picture = render(many(300), ".svg", "builtin").decode()
    assert "+ 288 more, " in picture and picture.count('class="card"') == 12
    assert len(render(many(300), ".md")) < 65_536
    assert "+ 290 more" in render(many(300), ".txt").decode()


def test_one_graph_more_than_the_page_has_room_for() -> None:
    """Leaks beyond the room come without a graph, then as a count; nothing is dropped in silence."""
    page = render(many(2000), ".html")
    told = re.search(rb"\+ (\d+) more; they are in the report", page)
    assert told and len(page) < 2_000_000
    assert page.count(b'<details class="leak') + int(told.group(1)) == 2000


@pytest.mark.slow
def test_a_second_is_enough_for_300_survivors() -> None:
    start = time.perf_counter()
    render(many(300), ".svg", "builtin")
    assert time.perf_counter() - start < 1.0


def test_markdown_shows_what_it_left_out() -> None:
    wordy = replace(many(50), survivors=tuple(replace(s, hint="h" * 600) for s in many(50).survivors))
    text = render(wordy, ".md").decode()
    assert "Too long for one comment" in text and text.count("```") % 2 == 0


def test_every_picture_form_has_an_engine_that_writes_it() -> None:
    assert set(PICTURES.values()) == set().union(*engines.FORMS.values())


def test_counters_are_one_a_step() -> None:
    events = json.loads(render(report(), ".trace"))["traceEvents"]
    live = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert live == [10_000 + 2624 * k for k in range(7)]


def test_a_leak_without_a_place_still_has_one_in_sarif() -> None:
    result = json.loads(render(rich_report(), ".sarif"))["runs"][0]["results"]
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in result]
    assert uris == ["train.py"] * 5
    hops = result[1]["relatedLocations"]
    assert [hop["message"]["text"] for hop in hops][3] == "torch.Tensor .grad_fn (cut here)"
    assert hops[1]["physicalLocation"]["region"] == {"startLine": 3}


def test_nothing_survives() -> None:
    empty = report()
    empty = type(empty)(empty.environment, empty.steps)
    for ending in TEXTS:
        assert render(empty, ending)
    assert "nothing outlives its step" in render(empty, ".svg", "builtin").decode()
    assert "Nothing outlives its step" in render(empty, ".html").decode()


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (Gap("steps", "0 of 6 steps after warm-up were seen"), "no step after warm-up was seen"),
        (Gap("capture", "deadline: no answer in 30.0 s"), "could be judged: deadline: no answer in 30.0 s"),
    ],
)
def test_where_nothing_was_judged_nothing_is_said_to_be_well(gap: Gap, said: str) -> None:
    unseen = report()
    unseen = type(unseen)(unseen.environment, unseen.steps, (), (), (gap,))
    for ending in TEXTS:
        text = re.sub(r"\s+", " ", render(unseen, ending).decode())
        assert "othing outlives" not in text
    for ending in (".txt", ".svg", ".html", ".md", ".mmd", ".dot"):
        assert said in re.sub(r"\s+", " ", render(unseen, ending).decode()), ending


def test_reports_need_no_torch(tmp_path: Path) -> None:
    from lifetime.report.records import to_json

    (tmp_path / "r.json").write_text(to_json(report(survivor())))
    code = (
        "import sys; from lifetime.cli import main; code = main(['render', 'r.json', '-o', 'r.html', '-o', 'r.svg']);"
        "sys.exit(code or ('torch' in sys.modules) or ('networkx' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.svg").exists()


@pytest.mark.slow
def test_a_system_dot_writes_pdf(tmp_path: Path) -> None:
    if not (shutil.which("dot") or engines._system_dot()):
        pytest.skip("no system dot here: PDF is not tried")
    assert render(rich_report(), ".pdf", "dot").startswith(b"%PDF")

"""The page in a real headless Chromium: opens, says nothing on the console, filters, zooms, copies, dark, narrow, printed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lifetime.heap.model import Link
from lifetime.report.render import render
from tests.report.chrome import Chrome
from tests.report.samples import many, report, rich_report, survivor
from tests.report.test_hostile import NASTY, poisoned

pytestmark = pytest.mark.slow

SHOWN = "[...document.querySelectorAll('.leak')].filter(l => !l.hidden).length"
VIEW_BOX = "document.querySelector('.canvas svg').getAttribute('viewBox')"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    found = Chrome(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(chrome: Chrome, tmp_path: Path) -> Chrome:
    target = tmp_path / "report.html"
    target.write_bytes(render(rich_report(), ".html"))
    chrome.problems.clear()
    chrome.look(1280, 900)
    chrome.open(target)
    return chrome


def press(page: Chrome, *keys: str) -> None:
    for key in keys:
        page.key(key)


def test_opens_in_silence(page: Chrome) -> None:
    assert page.eval("document.documentElement.className") == "js"
    assert page.eval(SHOWN) == 5 and page.eval("document.getElementById('count').textContent") == "5 of 5 shown"
    assert page.problems == []


def test_search_and_verdicts_filter(page: Chrome) -> None:
    press(page, "/", *"keepbackward")
    assert page.eval(SHOWN) == 1
    assert page.eval("[...document.querySelectorAll('.hit')].map(h => h.querySelector('.name').textContent)") == ["KeepBackward"]
    press(page, "Escape")
    assert page.eval(SHOWN) == 5
    page.eval("document.querySelector('input[value=growing]').click()")
    assert page.eval(SHOWN) == 3
    assert page.problems == []


def test_zoom_and_pan_by_keys_buttons_and_drag(page: Chrome) -> None:
    page.eval("document.querySelector('.canvas').scrollIntoView({behavior: 'instant', block: 'center'})")
    page.eval("document.querySelector('.canvas').focus({preventScroll: true})")
    home = page.eval(VIEW_BOX)
    press(page, "+", "+")
    zoomed = page.eval(VIEW_BOX)
    assert zoomed != home and page.eval("document.querySelector('.canvas').classList.contains('zoomed')")
    press(page, "ArrowDown")
    assert page.eval(VIEW_BOX) != zoomed
    before = page.eval(VIEW_BOX)
    box = page.eval("(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('.canvas').getBoundingClientRect())")
    for kind, dy in (("mousePressed", 0), ("mouseMoved", 40), ("mouseReleased", 40)):
        page.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1] + dy, button="left", buttons=1, clickCount=1)
    assert page.eval(VIEW_BOX) != before
    page.eval("document.querySelector('.zoom button[data-key=\"0\"]').click()")
    assert [float(n) for n in page.eval(VIEW_BOX).split()] == [float(n) for n in home.split()]
    assert page.problems == []


def test_the_comment_is_copied(page: Chrome) -> None:
    page.eval(
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); };"
        "document.querySelectorAll('.with-copy button')[1].click()"
    )
    assert page.eval("window.copied").startswith("# lifetime: holder a1b2c3d4\n")
    assert page.eval("document.querySelectorAll('.with-copy button')[1].textContent") == "Copied"
    page.eval(
        "navigator.clipboard.writeText = () => Promise.reject(new Error('denied'));"
        "document.execCommand = what => { window.fallback = what + ' ' + getSelection().toString().slice(0, 18); };"
        "document.querySelectorAll('.with-copy button')[1].click()"
    )
    assert page.eval("new Promise(done => setTimeout(() => done(window.fallback), 50))") == "copy # lifetime: holder"


def test_keys_walk_from_leak_to_leak(page: Chrome) -> None:
    press(page, "j", "j", "k")
    assert page.eval("document.activeElement.closest('.leak').id") == "leak-beef0001"


@pytest.mark.parametrize(("theme", "paper"), [("light", "rgb(246, 246, 244)"), ("dark", "rgb(19, 21, 25)")])
def test_themes(page: Chrome, theme: str, paper: str) -> None:
    page.look(1280, 900, theme)
    assert page.eval("getComputedStyle(document.body).backgroundColor") == paper


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_of_a_narrow_screen(page: Chrome, width: int) -> None:
    page.look(width, 800)
    assert page.eval("document.documentElement.scrollWidth") <= width


def test_printed_whole(page: Chrome) -> None:
    page.look(800, 1000, media="print")
    page.eval("dispatchEvent(new Event('beforeprint'))")
    assert page.eval("[...document.querySelectorAll('details')].every(d => d.open)")
    assert page.eval("getComputedStyle(document.querySelector('.controls')).display") == "none"


def test_a_tall_graph_is_not_cut_off(chrome: Chrome, tmp_path: Path) -> None:
    one = survivor()
    links = tuple(Link("holder" + "x" * k, "object", f".{'x' * k}", "attribute") for k in range(25))
    target = tmp_path / "tall.html"
    target.write_bytes(render(report(replace(one, chain=replace(one.chain, links=links))), ".html"))
    chrome.look(1280, 900)
    chrome.open(target)
    canvas, graph = (
        chrome.eval(f"document.querySelector('{name}').getBoundingClientRect().bottom") for name in (".canvas", ".canvas svg")
    )
    assert graph <= canvas


def test_whole_without_javascript(chrome: Chrome, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_bytes(render(rich_report(), ".html"))
    chrome.problems.clear()
    chrome.open(target, script=False)
    assert chrome.eval("document.documentElement.className") == ""
    assert chrome.eval(SHOWN) == 5
    assert chrome.eval("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert "↓ .grad_fn" in chrome.eval("document.querySelector('.leak pre:last-of-type').closest('.leak').textContent")


def test_hostile_names_do_nothing(chrome: Chrome, tmp_path: Path) -> None:
    target = tmp_path / "hostile.html"
    chrome.problems.clear()
    for name in NASTY:
        target.write_bytes(render(poisoned(name), ".html"))
        chrome.open(target)
        assert chrome.eval("document.scripts.length") == 1
        assert chrome.eval("document.querySelectorAll('img, iframe, object, embed, link').length") == 0
        assert chrome.eval("document.documentElement.scrollWidth <= innerWidth")
    assert chrome.problems == []


def test_300_leaks_filter_at_once(chrome: Chrome, tmp_path: Path) -> None:
    target = tmp_path / "many.html"
    target.write_bytes(render(many(300), ".html"))
    chrome.open(target)
    chrome.eval("(s => { s.value = 'keepbackward'; s.dispatchEvent(new Event('input')); })(document.getElementById('search'))")
    assert chrome.eval(SHOWN) == 150


def test_screenshots(page: Chrome) -> None:
    """Kept where `LIFETIME_SCREENSHOTS` names a folder, to be looked at."""
    folder = os.environ.get("LIFETIME_SCREENSHOTS")
    if not folder:
        pytest.skip("LIFETIME_SCREENSHOTS names no folder: no screenshots are kept")
    for name, width, theme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 390, "light")):
        page.look(width, 1600, theme)
        page.screenshot(Path(folder) / f"{name}.png")

"""Names from foreign programs: whatever they hold, every form stays well-formed and nothing of theirs becomes markup."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifetime.heap.model import Chain, Gap, Leaking, Link, Report, Root, RootKind, Survivor, TensorFacts
from lifetime.report.records import from_json, to_json
from lifetime.report.render import render
from lifetime.report.view import Mark, View
from tests.report.samples import report, survivor

NASTY = [
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "']]>--><!--",
    "`` ``` ````\n```",
    "| a | b |\n\n# title @everyone #1 [x](javascript:alert(1))",
    "end\n  subgraph x\n click a href",
    '"]:::root; click s0 "javascript:alert(1)"',
    '\\N\\G\\l\\\\" ] } digraph {',
    "\x1b[31mred\x00\x08\u202eevil\u2028",
    "\ud800lone",
    "名前 größe é",
    "&amp; &#60; #35;quot;",
    "%s {0} ${x} $HOME",
    "a" * 5000,
    "",
]
names = st.one_of(st.sampled_from(NASTY), st.text(max_size=60))


def poisoned(name: str) -> Report:
    """`name` in every field that is free text."""
    one = survivor()
    links = tuple(
        Link(name, name, name, kind, name, leaking, name)
        for kind, leaking in (("global", Leaking.NO), ("saved", Leaking.UNKNOWN), (name, Leaking.YES))
    )
    bad: Survivor = replace(
        one,
        fingerprint=name,
        tensor=TensorFacts(name, (1, 2), name, name, 5, name),
        chain=Chain(Root(RootKind.GLOBAL, name, name), links, 0, name),
        cut=replace(one.cut, reference=name, link=1, why=name),
        hint=name,
        gaps=(Gap(name, name),),
    )
    base = report(bad)
    environment = replace(base.environment, python=name, torch=name, device=name, command=(name, name))
    sites = tuple(replace(s, code=name, path=name, function=name, survivors=(name,)) for s in base.sites)
    return replace(base, environment=environment, sites=sites, gaps=(Gap(name, name),))


def view(name: str) -> View:
    return View(poisoned(name), {name: Mark(name, name)}, notes=(name,))


class Tags(HTMLParser):
    """Counts start tags, keeps attribute names and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)


HARMLESS = Tags(render(view("harmless"), ".html").decode())


@given(names)
@settings(max_examples=60, deadline=None)
def test_html_gets_no_tag_and_no_attribute_from_a_name(name: str) -> None:
    tags = Tags(render(view(name), ".html").decode())
    assert tags.tags["script"] == tags.tags["style"] == 1
    assert tags.attributes <= HARMLESS.attributes
    assert not [tag for tag in tags.tags if tag not in HARMLESS.tags]


@given(names)
@settings(max_examples=60, deadline=None)
def test_svg_stays_well_formed(name: str) -> None:
    root = ElementTree.fromstring(render(view(name), ".svg", "builtin"))
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds <= {"svg", "title", "desc", "style", "rect", "text", "g", "path"}
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]


@pytest.mark.parametrize("name", NASTY)
def test_an_engine_s_svg_stays_well_formed(name: str) -> None:
    root = ElementTree.fromstring(render(view(name), ".svg", "pure"))
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not kinds & {"script", "a", "image", "foreignObject", "use"}


MERMAID = re.compile(
    r"""flowchart\ TD
    |\s*accTitle:\ [\w .,+()/-]*
    |\s*subgraph\ \w+\["[^"<>]*(?:<br/>[^"<>]*)*"\]
    |\s*end
    |\s*direction\ TB
    |\s*\w+(?:\(\["|\["|\("|\[\[")(?:<b>[^"<>]*</b>)?(?:<br/>)?(?:[^"<>]|<br/>)*(?:"\]\)|"\]|"\)|"\]\])(?::::\w+)?
    |\s*\w+\ (?:-->|==>|--x|-\.->)(?:\|"[^"<>]*"\|)?\ \w+(?:\{\{"[^"<>]*"\}\}:::\w+)?
    |\s*(?:classDef|linkStyle|style)\ [\w,]+\ [\w:\#,.\ -]+""",
    re.VERBOSE,
)


@given(names)
@settings(max_examples=60, deadline=None)
def test_mermaid_keeps_to_its_grammar(name: str) -> None:
    for line in render(view(name), ".mmd").decode().split("\n")[:-1]:
        assert MERMAID.fullmatch(line), line


DOT_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|<(?:[^<>]|<[^<>]*>)*>|[\w.]+|->|[\[\]{}=;,]|//[^\n]*|\s+')


@given(names)
@settings(max_examples=60, deadline=None)
def test_dot_keeps_to_its_grammar(name: str) -> None:
    text, at, depth = render(view(name), ".dot").decode(), 0, 0
    while at < len(text):
        token = DOT_TOKEN.match(text, at)
        assert token, text[at : at + 60]
        depth += {"{": 1, "}": -1}.get(token.group(), 0)
        at = token.end()
    assert depth == 0


@given(names)
@settings(max_examples=60, deadline=None)
def test_markdown_fences_and_table_rows_hold(name: str) -> None:
    text = render(view(name), ".md").decode()
    fence = ""
    for line in text.split("\n"):
        found = re.match(r"`{3,}", line)
        if found and not fence:
            fence = found.group()
        elif fence and line == fence:
            fence = ""
        elif not fence and line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in (5, 7)
        elif not fence:
            assert not re.search(r"<(?!/?(?:details|summary|sub)>)", re.sub(r"(`+).*?\1", "", line))
            assert not re.search(r"@\w", re.sub(r"(`+).*?\1", "", line))
    assert fence == ""


@given(names)
@settings(max_examples=60, deadline=None)
def test_text_holds_no_control_character(name: str) -> None:
    text = render(view(name), ".txt").decode()
    assert all(c.isprintable() or c in "\n\u200b" for c in text)


@given(names)
@settings(max_examples=60, deadline=None)
def test_json_and_its_kin_come_back(name: str) -> None:
    hostile = poisoned(name)
    told = replace(hostile, sites=())  # a site's path is a file's: others are refused
    assert from_json(to_json(told)) == told
    for ending in (".sarif", ".trace"):
        json.loads(render(hostile, ending))


@pytest.mark.parametrize("ending", [".html", ".svg", ".txt", ".md", ".mmd", ".dot", ".sarif"])
def test_a_long_chain_is_folded_or_left_out(ending: str) -> None:
    one = survivor()
    different = tuple(Link(chr(97 + k % 26) * (k % 7 + 1) + chr(97 + k // 26 % 26), "t", f".{k}", "attribute") for k in range(3000))
    data = render(report(replace(one, chain=replace(one.chain, links=different))), ending, "builtin")
    assert len(data) < 200_000

"""The comment block: whole text, width, markers."""

from __future__ import annotations

from dataclasses import replace

from lifetime.heap.model import Link
from lifetime.linter.model import HOLDER_MARK
from lifetime.report.comment import Release, comment_lines, comment_markdown, graph_lines
from tests.report.samples import layered, report

REPORT = report()
RELEASE = Release(REPORT.sites[0], REPORT.survivors[0], REPORT.environment, "leaves", readers=2)


def test_the_block_names_the_holder_and_says_why_the_release_is_safe() -> None:
    assert "\n".join(comment_lines(RELEASE, 88)) == (
        "# lifetime: holder a1b2c3d4\n"
        "# The .grad of `leaves` outlived this backward: 2.6 KiB a step (torch 2.13.0, cpu), held\n"
        "# by\n"
        "#   root: global train.LOSSES (train.py:3)\n"
        "#   -> train.LOSSES\n"
        "#   -> list[0]\n"
        "#   -> Tensor.grad_fn  <- cut here\n"
        "#   -> MulBackward0._saved_self\n"
        "# Safe to release: of 2 later reads of a .grad none sees these leaves."
    )


def test_no_line_is_wider_than_asked() -> None:
    long = replace(RELEASE, leaves="self.some_module.some_attribute.detached_inputs", doubts=("a/long/path.py:12",) * 9)
    for width in (40, 60, 88):
        assert all(len(line) <= width for line in comment_lines(long, width) if " " in line[2:].strip())


def test_doubts_are_named_and_the_marker_is_found_again() -> None:
    lines = comment_lines(replace(RELEASE, doubts=("train.py:40",)), 88)
    assert lines[-1] == "# May be read later: train.py:40."
    found = HOLDER_MARK.search("    " + lines[0])
    assert found and found[1] == "a1b2c3d4"


def test_markdown_holds_the_graph() -> None:
    text = comment_markdown(RELEASE, "graph TD\n  a --> b\n")
    assert "```mermaid\ngraph TD\n  a --> b\n```" in text and "`a1b2c3d4`" in text


def test_equal_layers_are_folded_and_a_long_chain_is_cut_short() -> None:
    lines = list(graph_lines(layered(12)))
    assert lines[4:6] == [
        "-> AddmmBackward0.next_functions[0][0]",
        "-> ReluBackward0.next_functions[0][0]  (these 2 lines 12 times)",
    ]
    assert len(lines) == 7
    links = tuple(Link(chr(97 + k) * 3, "pkg.Thing", f".{chr(97 + k)}", "attribute") for k in range(26))
    long = replace(layered(), chain=replace(layered().chain, links=links), cut=replace(layered().cut, link=13))
    told = list(graph_lines(long))
    assert len(told) == 16 and "-> nnn.n  <- cut here" in told
    assert [line for line in told if "..." in line] == ["-> ... 7 more links", "-> ... 6 more links"]

"""Equal stretches fold; the cut and the cycle's link never do; no link is lost."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lifetime.heap.model import Link, Survivor
from lifetime.report.fold import ENDS, stretches
from tests.report.samples import layered, survivor


def chain(names: str, cut: int = 0, cycle: int | None = None) -> Survivor:
    """A chain of one-letter holders."""
    one = survivor()
    links = tuple(Link(name, "t", ".next", "attribute") for name in names)
    return replace(one, chain=replace(one.chain, links=links, cycle=cycle), cut=replace(one.cut, link=cut))


def told(names: str, cut: int = 0, cycle: int | None = None) -> str:
    """`x (ab)3 ...5` for x ababab and five links left out."""
    one = chain(names, cut, cycle)
    parts = []
    for stretch in stretches(one):
        text = "".join(one.chain.links[k].holder for k in stretch.links)
        parts.append(f"...{stretch.left_out}" if stretch.left_out else f"({text}){stretch.times}" if stretch.times > 1 else text)
    return " ".join(parts)


def test_runs_and_longer_periods() -> None:
    assert told("xabababy") == "x (ab)3 y"
    assert told("xaaaay") == "x (a)4 y"
    assert told("xaay") == "x a a y"  # two of one are not worth a frame
    assert told("xabcabcz") == "x (abc)2 z"


def test_the_cut_and_the_cycle_stand_alone() -> None:
    assert told("aaaaaaa", cut=3) == "(a)3 a (a)3"
    assert told("aaaaaaa", cut=0, cycle=1) == "a a (a)5"


def test_numbers_in_names_do_not_hide_a_layer() -> None:
    folded = [stretch for stretch in stretches(layered(48)) if stretch.times > 1]
    assert [(len(s.links), s.times) for s in folded] == [(2, 48)]


@given(st.text(alphabet="abc", min_size=1, max_size=80), st.data())
def test_every_link_is_told_once(names: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(names) - 1))
    cycle = data.draw(st.one_of(st.none(), st.integers(0, len(names) - 1)))
    seen: list[str] = []
    for stretch in stretches(chain(names, cut, cycle)):
        first = len(seen)
        if stretch.left_out:
            seen += names[first : first + stretch.left_out]
        else:
            assert stretch.links[0] == first
            seen += [names[k] for k in stretch.links] * stretch.times
            assert stretch.times == 1 or not {cut, cycle} & set(range(first, first + len(stretch.links) * stretch.times))
    assert "".join(seen) == names


def test_a_long_chain_keeps_its_ends_and_its_cut() -> None:
    names = "".join(chr(0x4E00 + k) for k in range(500))
    found = stretches(chain(names, cut=250))
    assert [s.left_out for s in found if s.left_out] == [250 - ENDS, 249 - ENDS]
    assert any(s.links == (250,) for s in found) and len(found) == 2 * ENDS + 3

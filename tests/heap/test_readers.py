"""Every common kind of holder is named in the chain of what it keeps.

The first tier traces all the programs at once and looks at the chains. The second traces each by itself and is strict: one
survivor, owners exact, the cut proved.
"""

from __future__ import annotations

import sys
import warnings

import pytest

from lifetime.heap.capture import Look
from lifetime.heap.model import Proof, Survivor
from tests.heap.holders import HOLDERS, Holder
from tests.heap.program import ROWS, chain_text, is_exact, module_name, traced, words

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fork is needed")
SHARED = {
    "finalize kw",
    "displayhook",
    "last_value",
    "last_traceback",
    "warnings record",
    "signal handler",
    "profile function",
    "gc callback",
    "at-fork function",
    "saved-tensors hooks that are still open",
    "tangent of a dual tensor",
}
"""These change one thing of the whole process, which the others would see: second tier only."""
HERE = [holder for holder in HOLDERS if holder.name != "exc group" or sys.version_info >= (3, 11)]
TOGETHER = [holder for holder in HERE if holder.name not in SHARED]


@pytest.fixture(scope="module")
def seen() -> Look:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return traced(*(holder.source for holder in TOGETHER), prove=False)


def lost(holder: Holder, survivor: Survivor) -> list[str]:
    return [text for text in holder.says if text not in words(survivor)]


def check_chain(holder: Holder, seen: Look) -> None:
    number = TOGETHER.index(holder)
    own = [
        s for s in (*seen.survivors, *seen.known) if s.tensor.shape == (ROWS, number + 1) or f"{module_name(number)}." in words(s)
    ]
    assert own, "no survivor"
    best = min(own, key=lambda survivor: (len(lost(holder, survivor)), survivor.verdict.value != holder.verdict))
    assert not lost(holder, best), chain_text(best)
    assert best.verdict.value == holder.verdict


@pytest.mark.parametrize("holder", TOGETHER, ids=lambda holder: holder.name)
def test_the_chain_names_the_holder(holder: Holder, seen: Look) -> None:
    check_chain(holder, seen)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("holder", HERE, ids=lambda holder: holder.name)
def test_alone_it_is_one_survivor_with_exact_owners_and_a_proved_cut(holder: Holder) -> None:
    look = traced(holder.source)
    best = min(look.survivors, key=lambda survivor: len(lost(holder, survivor)))
    assert not lost(holder, best), chain_text(best)
    assert best.verdict.value == holder.verdict
    assert is_exact(best), (best.owners, best.gaps)
    assert best.cut.proof is Proof.PROVED, best.cut.why

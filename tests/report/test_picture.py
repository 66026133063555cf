"""The cards before any drawing: which boxes there are, what leads from one to the next, where the cut and the ring go."""

from __future__ import annotations

from dataclasses import replace

from lifetime.heap.model import Chain, Link, Root, RootKind, SiteVerdict, Survivor
from lifetime.report.picture import ArrowKind, card, pen_width, picture
from lifetime.report.text import view_text
from lifetime.report.view import Mark, View
from lifetime.report.words import blamed
from tests.report.samples import hanging, layered, many, native, report, ring, survivor


def drawn(one: Survivor) -> str:
    """`kind title` for each box, the reference between, `X` for the cut, and where the ring goes."""
    found = card(one)
    down = {a.source: a for a in found.arrows if a.kind is not ArrowKind.RING}
    parts = []
    for index, box in enumerate(found.boxes):
        parts.append(f"{box.kind.value} {box.title}" + (f" x{found.folds[box.fold]}" if box.fold is not None else ""))
        if index in down:
            parts.append(("X " if down[index].kind is ArrowKind.CUT else "") + (down[index].label or "|"))
    rings = [f"ring {a.source}-{a.target}" for a in found.arrows if a.kind is ArrowKind.RING]
    return "; ".join([" ".join(parts), *rings])


def rooted(root: Root, *links: Link) -> Survivor:
    one = survivor()
    return replace(one, chain=Chain(root, links), cut=replace(one.cut, link=0, reference=links[0].reference))


def test_a_module_a_cut_and_a_graph() -> None:
    assert drawn(survivor()) == (
        "root global train .LOSSES object list [0] object Tensor X .grad_fn autograd MulBackward0 ._saved_self tensor Tensor"
    )


def test_layers_are_folded() -> None:
    assert "X .grad_fn autograd AddmmBackward0 x12 .next_functions[0][0] autograd ReluBackward0 x12 .next" in drawn(layered())


def test_rings() -> None:
    assert drawn(ring()) == "object Tensor .grad_fn autograd KeepBackward X .out tensor Tensor; ring 2-0"
    assert drawn(hanging()) == (
        "object walk .__closure__[0] object cell X .out object walk .__closure__[1] object cell .cell_contents tensor Tensor;"
        " ring 2-0"
    )


def test_a_root_that_is_the_first_holder_is_one_box() -> None:
    item = Link("worker_loop", "frame", ".item", "local")
    assert drawn(rooted(Root(RootKind.THREAD, "feeder: worker_loop.item"), item)) == (
        "root thread feeder: worker_loop X .item tensor Tensor"
    )
    grid = Link("Anchors", "type", ".grid", "attribute")
    assert drawn(rooted(Root(RootKind.CLASS, "m.Anchors.grid"), grid)) == "root class m.Anchors X .grid tensor Tensor"
    assert drawn(rooted(Root(RootKind.CLASS, "m.MyAnchors.grid"), grid)) == (
        "root class m.MyAnchors.grid | object Anchors X .grid tensor Tensor"
    )


def test_an_owner_in_native_code() -> None:
    assert drawn(native()) == "root native autocast weight cache X torch.clear_autocast_cache() tensor Tensor"
    owns = Link("C++", "C++", "<owns>", "native")
    assert drawn(rooted(Root(RootKind.NATIVE, "an owner"), owns)) == "root native an owner X <owns> tensor Tensor"


def test_weights_are_all_bytes_above_the_cut_and_one_tensor_s_below() -> None:
    weights = [arrow.weight for arrow in card(survivor()).arrows]
    assert weights == [15744, 15744, 15744, 2624]
    assert pen_width(0, 15744) == 1.0 < pen_width(2624, 15744) < pen_width(15744, 15744) == 3.5


def test_the_rest_is_a_count_and_a_mark_is_said() -> None:
    one = many(14)
    shown = picture(View(one, {"00000000": Mark("new", "new: 5 B")}), most=12)
    assert shown.rest == "+ 2 more, 66.0 MiB together"
    assert shown.cards[0].title.startswith("NEW, GROWING: 54.0 MiB") and shown.cards[0].subtitle.endswith(", new: 5 B")


def test_a_leak_s_short_name() -> None:
    assert [blamed(one) for one in (survivor(), ring(), native())] == [
        "train.LOSSES : Tensor.grad_fn",
        "cycle : KeepBackward.out",
        "autocast weight cache : torch.clear_autocast_cache()",
    ]


def test_sites_of_libraries_that_were_not_reached_are_a_count() -> None:
    base = report()
    library = replace(base.sites[0], path="/env/lib/site-packages/torch/x.py", verdict=SiteVerdict.NOT_REACHED, survivors=())
    own = replace(base.sites[0], path="mine.py", verdict=SiteVerdict.NOT_REACHED, hits=0, bytes_per_step=0, survivors=())
    lines = list(view_text(View(replace(base, sites=(own, library, *base.sites)))))
    assert lines[1:4] == [
        "  site train.py:9: LT001 confirmed in Recompute.backward: 6 hits, 2.6 KiB a step",
        "  site mine.py:9: LT001 not-reached in Recompute.backward: 0 hits",
        "  + 1 site in libraries, not reached",
    ]
    assert "  Sites: train.py:9 (LT001)" in lines

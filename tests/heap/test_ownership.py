"""Owners named against owners counted, layer by layer, on references and counts made by hand."""

from __future__ import annotations

from lifetime.heap.autograd import UNDO
from lifetime.heap.graph import Edge, EdgeKind, Layer, ObjectId
from lifetime.heap.model import Layer as Tally
from lifetime.heap.model import Owners
from lifetime.heap.ownership import reconcile
from lifetime.heap.prove import Counted

TENSOR, STORAGE, VIEW = ObjectId(10), ObjectId(20), ObjectId(11)


def into(target: ObjectId, *layers: Layer, kind: EdgeKind = EdgeKind.ITEM) -> list[Edge]:
    return [Edge(ObjectId(100 + i), target, kind, f"[{i}]", 1, layer) for i, layer in enumerate(layers)]


def owns(*tensors: ObjectId) -> list[Edge]:
    return [Edge(tensor, STORAGE, EdgeKind.STORAGE, ".untyped_storage()", 1, Layer.STORAGE) for tensor in tensors]


def test_a_tensor_in_one_list() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(1, 1, 1, True, False)}
    owners, gaps = reconcile([TENSOR], {TENSOR: into(TENSOR, Layer.WRAPPER)}, counted, owns(TENSOR), False)
    assert owners == Owners(Tally(1, 1), Tally(1, 1), Tally(1, 1)) and gaps == ()


def test_an_owner_in_cpp_owns_the_wrapper_too() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(2, 2, 1, True, True)}
    edges = into(TENSOR, Layer.WRAPPER, Layer.TENSOR)
    owners, gaps = reconcile([TENSOR], {TENSOR: edges}, counted, owns(TENSOR), False)
    assert owners == Owners(Tally(2, 2), Tally(2, 2), Tally(1, 1)) and gaps == ()


def test_a_missing_owner_is_counted_and_said() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(3, 3, 2, True, True)}
    owners, gaps = reconcile([TENSOR], {TENSOR: into(TENSOR, Layer.WRAPPER)}, counted, owns(TENSOR), False)
    assert owners == Owners(Tally(2, 3), Tally(1, 3), Tally(1, 2))
    assert [gap.why for gap in gaps] == [
        "unknown owner: 1 of 3 in the wrapper layer",
        "unknown owner: 2 of 3 in the tensor layer",
        "unknown owner: 1 of 2 in the storage layer",
    ]


def test_a_saved_output_has_no_wrapper() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(0, 1, 1, True, False)}
    edges = into(TENSOR, Layer.TENSOR, kind=EdgeKind.SAVED)
    owners, gaps = reconcile([TENSOR], {TENSOR: edges}, counted, owns(TENSOR), False)
    assert owners == Owners(Tally(0, 0), Tally(1, 1), Tally(1, 1)) and gaps == ()


def test_views_add_up_and_the_storage_is_one() -> None:
    counted: dict[ObjectId, Counted | str] = {
        TENSOR: Counted(1, 2, 2, True, True),
        VIEW: Counted(1, 1, 2, True, False),
    }
    edges = {TENSOR: into(TENSOR, Layer.TENSOR, kind=EdgeKind.BASE), VIEW: into(VIEW, Layer.WRAPPER)}
    owners, gaps = reconcile([TENSOR, VIEW], edges, counted, owns(TENSOR, VIEW), False)
    assert owners == Owners(Tally(2, 2), Tally(3, 3), Tally(2, 2)) and gaps == ()


def test_a_bare_storage_is_its_own_holder() -> None:
    counted: dict[ObjectId, Counted | str] = {VIEW: Counted(1, 0, 1, False, False)}
    owners, gaps = reconcile([VIEW], {VIEW: into(VIEW, Layer.WRAPPER)}, counted, owns(VIEW), False)
    assert owners == Owners(Tally(1, 1), Tally(0, 0), Tally(1, 1)) and gaps == ()


def test_an_opaque_owner_counts_for_all_that_its_cut_freed() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(1, 4, 1, True, True)}
    edges = {TENSOR: into(TENSOR, Layer.TENSOR, kind=EdgeKind.NATIVE)}
    freed, _ = reconcile([TENSOR], edges, counted, owns(TENSOR), True)
    alive, gaps = reconcile([TENSOR], edges, counted, owns(TENSOR), False)
    assert freed is not None and freed.tensor == Tally(4, 4)
    assert alive is not None and alive.tensor == Tally(2, 4) and len(gaps) == 1


def test_what_could_not_be_counted_is_unknown() -> None:
    owners, gaps = reconcile([TENSOR], {}, {TENSOR: "cannot follow .grad_fn"}, [], False)
    assert owners is None and gaps[0].why == "cannot follow .grad_fn"


def test_more_named_than_counted_is_a_defect_and_said() -> None:
    counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(1, 1, 1, True, False)}
    edges = {TENSOR: into(TENSOR, Layer.WRAPPER, Layer.WRAPPER)}
    _, gaps = reconcile([TENSOR], edges, counted, owns(TENSOR), False)
    assert [gap.why for gap in gaps] == ["a defect of lifetime: 2 named, 1 counted in the wrapper layer"]


def test_what_undoes_a_view_owns_the_base_as_often_as_is_counted() -> None:
    for uses, missing in ((1, 0), (2, 0), (3, 1)):
        counted: dict[ObjectId, Counted | str] = {TENSOR: Counted(0, uses, 1, True, False)}
        edges = [Edge(VIEW, TENSOR, EdgeKind.BASE, name, 1, Layer.TENSOR) for name in ("._base", UNDO)]
        owners, gaps = reconcile([TENSOR], {TENSOR: edges}, counted, owns(TENSOR), False)
        assert owners is not None and owners.tensor == Tally(uses - missing, uses) and len(gaps) == missing

"""What a survivor says of itself beside its chain: second holders, numbers that add up, names, and what it leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lifetime.heap.graph import CutOutcome, Edge, History, ObjectId, RootRef, Snapshot, StorageId
from lifetime.heap.judge import judge
from lifetime.heap.model import Leaking, Proof, RootKind, Survivor, Verdict
from lifetime.report.words import cut_text
from tests.heap.builder import cutter, heap


def survivors(snapshot: Snapshot, first: int = 1, last: int = 6, everything: bool = False) -> tuple[Survivor, ...]:
    return judge(
        snapshot,
        label=lambda edges: edges,
        prove=cutter(snapshot),
        owners=lambda storages: {},
        history=History(first, last),
        everything=everything,
    ).survivors


def each(*lines: str, steps: range = range(1, 7)) -> list[str]:
    return [line.replace("#", str(step)) for step in steps for line in lines]


REPLAY = ("frame main", "main local:.replay-> r", "object r : m.Replay", "r .items-> items")
HOOKS = ("main local:.net-> net", "model net : m.Net", "net ._forward_hooks-> hooks", "object hooks : OrderedDict")
HELD_TWICE = each("items [#]-> t#", "t# * 64 @#", "hooks [#]-> f#", "function f#", "f# .__closure__-> c#", "c# .cell_contents-> t#")


def test_a_second_holder_is_named_with_its_chain_and_in_the_hint() -> None:
    (one,) = survivors(heap(*REPLAY, *HOOKS, *HELD_TWICE, "main local:.obs-> t6"))
    assert (one.cut.proof, one.cut.frees_bytes, one.cut.count) == (Proof.PROVED, 5 * 64, 6)
    assert one.cut.also == ("net._forward_hooks[1].__closure__.cell_contents",)
    assert one.cut.why == ("with 1 more reference: net._forward_hooks; 1 storage of the newest step still in use by main.obs")
    assert one.hint == "bound or clear replay.items; and handle.remove() the hooks in net._forward_hooks"


def test_one_holder_has_no_other() -> None:
    (one,) = survivors(heap(*REPLAY, *each("items [#]-> t#", "t# * 64 @#")))
    assert (one.cut.also, one.cut.why, one.cut.count) == ((), None, 6)


def test_what_else_a_cut_frees_is_said() -> None:
    (one,) = survivors(heap(*REPLAY, *each("items [#]-> t#", "t# * 64 @#"), "t1 .twin-> w", "w * 32 @0"))
    assert (one.bytes, one.cut.frees_bytes, one.cut.why) == (384, 416, "32 B of it not of this leak")


def test_what_a_collection_frees_anyway_is_none_of_the_cut() -> None:
    snapshot = heap(*REPLAY, *each("items [#]-> t#", "t# * 64 @#"), *each("a# .b-> b#", "b# .a-> a#", "b# .t-> g#", "g# * 8 @#"))
    cut = cutter(snapshot)
    rubbish = [key for key, one in snapshot.watched.items() if one.nbytes == 8]

    def collecting(path: Sequence[Edge], cuts: Sequence[Edge], expected: frozenset[StorageId]) -> CutOutcome:
        died = cut(path, cuts, expected).died | set(rubbish)
        return CutOutcome(died, sum(snapshot.watched[key].nbytes for key in died))

    found = judge(
        snapshot,
        label=lambda edges: edges,
        prove=collecting,
        owners=lambda storages: {},
        history=History(1, 6),
    )
    assert [(one.bytes, one.cut.frees_bytes, one.cut.why) for one in found.survivors if one.chain.root.name == "main.replay"] == [
        (384, 384, None)
    ]


def test_bytes_a_step_where_the_newest_step_is_not_whole_yet() -> None:
    lines = each("items [#]-> p#", "tuple p#", "p# [0]-> v#", "v# * 1 @#") + each("p# [1]-> o#", "o# * 32 @#", steps=range(1, 6))
    (one,) = survivors(heap(*REPLAY, *lines))
    assert (one.count, one.count_per_step, one.bytes_per_step) == (11, 2.0, 33)


def test_who_holds_it_judges_nothing() -> None:
    model = ("module __main__", "__main__ global:.model-> net", "model net : m.Net", "net ._parameters-> ps", "object ps : dict")
    weight = ("ps ['weight']-> w", "parameter w : torch.nn.parameter.Parameter", "w * 64 @0")
    (one,) = survivors(heap(*model, *weight), 0, 0, everything=True)
    assert (one.judged, one.hint) == (False, "a parameter lives as long as its model")
    assert [link.leaking for link in one.chain.links] == [Leaking.NO, Leaking.NO, Leaking.UNKNOWN]
    graph = (
        "frame f",
        "f local:.t-> t",
        "t * 8 @0",
        "t .grad_fn-> n",
        "autograd n : MulBackward0",
        "n ._saved_self-> x",
        "x * 64 @0",
    )
    every = survivors(heap(*graph), 0, 0, everything=True)
    assert all(link.leaking is not Leaking.YES for found in every for link in found.chain.links)
    assert {found.hint for found in every} == {
        "`del t` lets go of it",
        "keep t.detach() to let go of it: a grad_fn holds the whole graph",
    }


def test_who_holds_it_says_where_another_has_it_too() -> None:
    (one,) = survivors(
        heap("module m", "m global:.L-> L", "L [0]-> t", "t * 8 @0", "frame f", "f base:.b-> t"), 0, 0, everything=True
    )
    assert (one.cut.proof, one.cut.why) == (Proof.DISPROVED, "1 storage of 1 did not die: another holder has them too")
    assert cut_text(one) == "[0] alone does not free it: f.b has it too"


def test_variables_of_two_functions_are_two_names() -> None:
    def name(function: str, *variables: str) -> str:
        held = [line for k, v in enumerate(variables) for line in (f"{function} local:.{v}-> t{k}", f"t{k} * 8 @6")]
        (one,) = survivors(heap(f"frame {function}", *held))
        return one.fingerprint

    assert len({name("main", "loss"), name("main", "y"), name("train", "loss"), name("main", "loss", "y")}) == 4
    assert name("main", "loss", "y") == name("main", "y", "loss")


def test_variables_are_told_together_and_leak_nothing() -> None:
    graph = ("t .grad_fn-> n", "autograd n : MulBackward0", "n ._saved_self-> x", "x * 64 @6")
    (one,) = survivors(heap("frame main", "main local:.loss-> t", "t * 8 @6", *graph, "main local:.norm-> u", "u * 4 @6"))
    assert (one.cut.reference, one.cut.also) == (".loss", ("main.norm",))
    assert all(link.leaking is not Leaking.YES for link in one.chain.links)


def test_three_steps_leave_it_open() -> None:
    growing = ("module m", "m global:.L-> L", *each("L [#]-> t#", "t# * 8 @#", steps=range(0, 3)))
    (one,) = survivors(heap(*growing), 0, 2)
    assert one.verdict is Verdict.LINGERING
    assert [gap.why for gap in one.gaps[:1]] == ["too few steps to tell growing from lingering (3 seen, 4 needed)"]
    (one,) = survivors(heap("module m", "m global:.L-> L", "L [0]-> t", "t * 8 @2"), 0, 2)
    assert [gap.where for gap in one.gaps] == [one.fingerprint], "it was replaced"


def test_the_hint_calls_the_holder_as_the_program_does() -> None:
    trainer = ("module __main__", "__main__ global:.t-> t", "object t : m.Trainer", "t .__dict__-> d", "object d : dict")
    metrics = ("d ['metrics']-> ms", "object ms : defaultdict", "ms ['loss']-> L", *each("L [#]-> x#", "x# * 8 @#"))
    (one,) = survivors(heap(*trainer, *metrics))
    assert one.hint == "bound or clear t.metrics['loss']"


def test_of_running_functions_the_outermost_names_what_all_of_them_use() -> None:
    seen = heap("frame act", "act local:.self-> a", "frame main", "main local:.agent-> a", "object a : m.Agent", "a .kept-> L",
                *each("L [#]-> t#", "t# * 8 @#"))  # fmt: skip
    inner, outer = seen.roots
    (one,) = survivors(replace(seen, roots=(inner, replace(outer, depth=1))))
    assert one.chain.root.name == "main.agent"


def test_a_signal_handler_explains_least() -> None:
    handler = RootRef(ObjectId(1), RootKind.INTERPRETER, "signal.getsignal(SIGTERM)")
    seen = heap("object h : m.Handler", "h .trainer-> a", "frame fit", "fit local:.self-> a", "a .kept-> L",
                *each("L [#]-> t#", "t# * 8 @#"))  # fmt: skip
    assert [one.chain.root.name for one in survivors(replace(seen, roots=(handler, *seen.roots)))] == ["fit.self"]
    assert [one.chain.root.name for one in survivors(replace(seen, roots=(handler,)))] == ["signal.getsignal(SIGTERM)"]

"""Whole judgements of small heaps: every survivor with its numbers, chain, blamed reference and proof, one line each.

The proof is done on the graph itself (`builder.cutter`), by networkx, so that it can disagree with the judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from lifetime.heap.graph import Death, Edge, EdgeKind, History, Snapshot
from lifetime.heap.judge import judge
from tests.heap.builder import heap, outcome

STEPS = range(1, 7)


def each(lines: Callable[[int], Iterable[str]], steps: Iterable[int] = STEPS) -> list[str]:
    return [line for step in steps for line in lines(step)]


def kept(holder: str, step: int, size: int = 64) -> tuple[str, str]:
    """An item of a container, born in its step."""
    return f"{holder} [{step}]-> t{step}", f"t{step} * {size} @{step}"


def graph(step: int, node: str = "MulBackward0") -> tuple[str, ...]:
    """A kept loss whose graph saves one activation."""
    return (
        f"L [{step}]-> t{step}",
        f"t{step} * 4 @{step}",
        f"autograd n{step} : {node}",
        f"t{step} .grad_fn-> n{step}",
        f"n{step} ._saved_self-> x{step}",
        f"x{step} * 640 @{step}",
    )


DICT = ("module m", "m global:.D-> d", "object d : dict")
LOSSES = ("module m", "m global:.LOSSES-> L")


def test_appended_in_every_step() -> None:
    assert outcome(heap(*LOSSES, *each(lambda k: kept("L", k)))) == [
        "growing: 6 of 384 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[1]; cut 1 [1] proved 384 B"
    ]


def test_a_kept_loss_and_its_graph_are_one_leak() -> None:
    assert outcome(heap(*LOSSES, *each(graph))) == [
        "growing: 12 of 3864 B, 2 and 644 B a step; global m.LOSSES: m.LOSSES L[1] Tensor.grad_fn n1._saved_self;"
        " cut 1 [1] proved 3864 B"
    ]


def test_what_a_loop_still_uses_is_no_second_holder_and_its_own_variables_are_one_line() -> None:
    snapshot = heap(
        "frame main",
        "main local:.losses-> L",
        "main local:.loss-> t6",
        "main local:.x-> x6",
        *each(graph),
        "main local:.y-> y",
        "y * 8 @6",
        "main local:.z-> z",
        "z * 16 @6",
    )
    assert outcome(snapshot) == [
        "growing: 12 of 3864 B, 2 and 644 B a step; local main.losses: main.losses L[1] Tensor.grad_fn n1._saved_self;"
        " cut 1 [1] proved 3220 B (2 storages of the newest step still in use by main.loss, main.x)",
        "lingering: 2 of 24 B, 2 and 24 B a step; local main.z: main.z; cut 0 .z proved 24 B",
    ]


def test_the_variables_of_a_loop_at_the_top_of_a_program_are_one_line_too() -> None:
    snapshot = heap("module __main__", "__main__ global:.x-> x", "x * 8 @6", "__main__ global:.y-> y", "y * 4 @6")
    assert outcome(snapshot) == ["lingering: 2 of 12 B, 2 and 12 B a step; global __main__.x: __main__.x; cut 0 .x proved 12 B"]


def test_two_holders_of_the_same_things() -> None:
    snapshot = heap(*LOSSES, "m global:.COPY-> C", *each(lambda k: (*kept("L", k), f"C [{k}]-> t{k}")))
    assert outcome(snapshot) == [
        "growing: 6 of 384 B, 1 and 64 B a step; global m.COPY: m.COPY C[1];"
        " cut 1 [1] proved 384 B (with 1 more reference: m.LOSSES)"
    ]


def test_a_graph_that_two_lists_share() -> None:
    def both(k: int) -> tuple[str, ...]:
        one = (f"a [{k}]-> t{k}", f"t{k} * 4 @{k}", f"t{k} .grad_fn-> m{k}", f"m{k} .next_functions[0][0]-> n{k}")
        two = (f"b [{k}]-> u{k}", f"u{k} * 4 @{k}", f"u{k} .grad_fn-> n{k}", f"n{k} ._saved_self-> x{k}", f"x{k} * 640 @{k}")
        return (*one, *two, f"autograd m{k} : MeanBackward0", f"autograd n{k} : ExpBackward0")

    assert outcome(heap(*DICT, "d ['a']-> a", "d ['b']-> b", *each(both))) == [
        "growing: 12 of 3864 B, 2 and 644 B a step; global m.D: m.D d['b'] b[1] Tensor.grad_fn n1._saved_self; cut 2 [1]"
        " proved 24 B (6 storages of 12 are held by another survivor of this report too)",
        "growing: 6 of 24 B, 1 and 4 B a step; global m.D: m.D d['a'] a[1]; cut 2 [1] proved 24 B",
    ]


def test_a_second_holder_that_cannot_be_cut_leaves_the_blame_disproved() -> None:
    snapshot = heap(*LOSSES, "frame main", *each(lambda k: (*kept("L", k), f"main base:.b{k}-> t{k}")))
    assert outcome(snapshot) == [
        "growing: 6 of 384 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[1];"
        " cut 1 [1] disproved 0 B (6 storages of 6 did not die: another holder has them too)"
    ]


@pytest.mark.parametrize(
    ("what", "steps", "expected"),
    [
        (
            "in every second step",
            (2, 4, 6),
            ["growing: 3 of 192 B, 0.5 and 32 B a step; global m.LOSSES: m.LOSSES L[2]; cut 1 [2] proved 192 B"],
        ),
        (
            "two places in turn",
            (5, 6),
            ["lingering: 2 of 128 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[5]; cut 1 [5] proved 128 B"],
        ),
        (
            "in the last step only",
            (6,),
            ["lingering: 1 of 64 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[6]; cut 1 [6] proved 64 B"],
        ),
        ("a cache that filled for four steps", (1, 2, 3, 4), []),
        ("once, some steps ago", (3,), []),
        ("in warm-up", (0,), []),
    ],
)
def test_births(what: str, steps: tuple[int, ...], expected: list[str]) -> None:
    assert outcome(heap(*LOSSES, *each(lambda k: kept("L", k), steps))) == expected, what


def test_shapes_that_change_in_every_step() -> None:
    assert outcome(heap(*LOSSES, *each(lambda k: kept("L", k, 64 * k)))) == [
        "growing: 6 of 1344 B, 1 and 256 B a step; global m.LOSSES: m.LOSSES L[6]; cut 1 [6] proved 1344 B"
    ]


def test_a_cache_that_shrinks_hides_nothing() -> None:
    snapshot = heap(*LOSSES, *each(lambda k: kept("L", k)), "m global:.CACHE-> C", "C [0]-> c", "c * 6400 @0")
    assert outcome(snapshot) == ["growing: 6 of 384 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[1]; cut 1 [1] proved 384 B"]


@pytest.mark.parametrize("sort", ["object d : collections.deque max 3", "object d : functools._lru_cache_wrapper max 4"])
def test_a_container_with_a_limit_is_kept_on_purpose(sort: str) -> None:
    assert outcome(heap("module m", sort, "m global:.D-> d", *each(lambda k: kept("d", k), (4, 5, 6)))) == []
    assert outcome(heap("module m", sort, "m global:.D-> d", *each(lambda k: kept("d", k), (1, 2, 3))), last=3) == []


def test_a_buffer_without_a_limit_is_known_by_what_it_lets_go() -> None:
    snapshot = heap(*LOSSES, *each(lambda k: kept("L", k), (3, 4, 5, 6)))
    assert outcome(snapshot, deaths=(Death(1, 4, 64), Death(2, 5, 64))) == [
        "lingering: 4 of 256 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[3]; cut 1 [3] proved 256 B"
    ]


def test_a_linked_list_of_pairs() -> None:
    def pair(k: int) -> tuple[str, ...]:
        return (f"tuple p{k}", f"p{k} [0]-> t{k}", f"t{k} * 8 @{k}", *((f"p{k} [1]-> p{k - 1}",) if k > 1 else ()))

    assert outcome(heap("module m", "m global:.L-> p6", *each(pair))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.L: m.L p6[1] p5[0]; cut 1 [1] proved 40 B"
        " (8 B of the leak hangs on its holder another way)"
    ]


def test_a_linked_list_of_objects_with_dictionaries() -> None:
    def element(k: int) -> tuple[str, ...]:
        own = (f"object n{k} : m.Node", f"n{k} .__dict__-> d{k}", f"object d{k} : dict", f"d{k} ['t']-> t{k}", f"t{k} * 8 @{k}")
        return (*own, *((f"d{k} ['next']-> n{k - 1}",) if k > 1 else ()))

    assert outcome(heap("module m", "m global:.L-> n6", *each(element))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.L: m.L n6.next n5.t; cut 1 .next proved 40 B"
        " (8 B of the leak hangs on its holder another way)"
    ]


def running_total(holder: str) -> list[str]:
    """`holder` refers to the newest sum; the graph of the sum reaches the activation of every step."""

    def one(k: int) -> tuple[str, ...]:
        nodes = (f"autograd a{k} : AddBackward0", f"autograd n{k} : PowBackward0", f"a{k} .next_functions[1][0]-> n{k}")
        saved = (f"n{k} ._saved_self-> h{k}", f"h{k} * 640 @{k}")
        return (*nodes, *saved, *((f"a{k} .next_functions[0][0]-> a{k - 1}",) if k > 1 else ()))

    return [f"{holder}-> T", "T * 4 @6", "T .grad_fn-> a6", *each(one)]


def test_a_running_total_is_blamed_for_its_graph_and_not_for_itself() -> None:
    assert outcome(heap("module m", *running_total("m global:.total"))) == [
        "growing: 7 of 3844 B, 1.2 and 641 B a step; global m.total:"
        " m.total Tensor.grad_fn a6.next_functions[1][0] n6._saved_self; cut 1 .grad_fn proved 3840 B"
        " (4 B of the leak hangs on its holder another way)"
    ]


def test_a_buffer_that_carries_a_graph() -> None:
    bn = ("module m", "m global:.bn-> bn", "model bn : m.Norm", "bn ._buffers-> bs", "object bs : dict")
    assert outcome(heap(*bn, *running_total("bs ['running']"))) == [
        "growing: 7 of 3844 B, 1.2 and 641 B a step; global m.bn:"
        " m.bn bn._buffers bs['running'] Tensor.grad_fn a6.next_functions[1][0] n6._saved_self; cut 3 .grad_fn proved 3840 B"
        " (4 B of the leak hangs on its holder another way)"
    ]
    assert outcome(heap(*bn, "bs ['running']-> T", "T * 4 @6")) == [], "a buffer that is replaced is the module's own affair"


def layers(count: int, own: Callable[[int], Iterable[str]]) -> list[str]:
    net = ["module m", "m global:.net-> net", "model net : m.Net", "net ._modules-> mods", "object mods : dict"]
    return [*net, *each(lambda k: (f"mods ['{k}']-> l{k}", f"model l{k} : m.Layer", *own(k)), range(1, count + 1))]


def test_forty_eight_layers_are_one_leak() -> None:
    def own(layer: int) -> list[str]:
        return [f"l{layer} .acts-> a{layer}", *each(lambda k: (f"a{layer} [{k}]-> t{layer}_{k}", f"t{layer}_{k} * 10 @{k}"))]

    assert outcome(heap(*layers(48, own))) == [
        "growing: 288 of 2880 B, 48 and 480 B a step; global m.net: m.net net._modules mods['1'] l1.acts a1[1];"
        " cut 4 [1] proved 2880 B"
    ]


def test_caches_of_layers_that_are_each_filled_once_do_not_grow() -> None:
    assert outcome(heap(*layers(6, lambda k: (f"l{k} .cache-> t{k}", f"t{k} * 10 @{k}")))) == [
        "lingering: 1 of 10 B, 1 and 10 B a step; global m.net: m.net net._modules mods['6'] l6.cache; cut 3 .cache proved 10 B"
    ]


def test_attributes_that_are_each_set_once_do_not_grow() -> None:
    snapshot = heap(
        "module m",
        "m global:.o-> o",
        "object o : m.O",
        "o .a-> t2",
        "t2 * 8 @2",
        "o .b-> t4",
        "t4 * 8 @4",
        "o .c-> t6",
        "t6 * 8 @6",
    )
    assert outcome(snapshot) == ["lingering: 1 of 8 B, 1 and 8 B a step; global m.o: m.o o.c; cut 1 .c proved 8 B"]


def test_a_dictionary_with_a_new_key_in_each_step() -> None:
    keys = ("ad5f", "be", "cow", "d7", "elk", "fox")
    snapshot = heap(*DICT, *each(lambda k: (f"d ['{keys[k - 1]}']-> t{k}", f"t{k} * 8 @{k}")))
    assert outcome(snapshot) == ["growing: 6 of 48 B, 1 and 8 B a step; global m.D: m.D d['ad5f']; cut 1 ['ad5f'] proved 48 B"]


def test_two_lists_in_one_dictionary_are_two_leaks() -> None:
    def both(k: int) -> tuple[str, ...]:
        return (f"a [{k}]-> t{k}", f"t{k} * 8 @{k}", f"b [{k}]-> u{k}", f"u{k} * 4 @{k}")

    assert outcome(heap(*DICT, "d ['a']-> a", "d ['b']-> b", *each(both))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.D: m.D d['a'] a[1]; cut 2 [1] proved 48 B",
        "growing: 6 of 24 B, 1 and 4 B a step; global m.D: m.D d['b'] b[1]; cut 2 [1] proved 24 B",
    ]


def test_lists_in_a_list_of_each_step_and_a_list_in_a_list() -> None:
    rows = each(lambda k: (f"L [{k}]-> row{k}", f"row{k} [0]-> t{k}", f"t{k} * 8 @{k}"))
    assert outcome(heap(*LOSSES, *rows)) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.LOSSES: m.LOSSES L[1] row1[0]; cut 1 [1] proved 48 B"
    ]
    assert outcome(heap(*LOSSES, "L [0]-> mid", "mid [0]-> acc", *each(lambda k: kept("acc", k, 8)))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.LOSSES: m.LOSSES L[0] mid[0] acc[1]; cut 3 [1] proved 48 B"
    ]


PARAMETER = "torch.nn.parameter.Parameter"


def test_gradients_that_set_to_none_replaces_are_no_news() -> None:
    def own(k: int) -> tuple[str, ...]:
        own = (f"l{k} ._parameters-> ps{k}", f"ps{k} ['w']-> p{k}", f"parameter p{k} : {PARAMETER}")
        return (*own, f"p{k} .grad-> g{k}", f"g{k} * 9 @6")

    assert outcome(heap(*layers(5, own))) == []


def test_gradients_are_no_part_of_a_leak_whose_graph_reaches_their_parameters() -> None:
    model = ("frame main", "main local:.net-> net", "model net : m.Net", "net ._parameters-> ps", "ps ['w']-> p")
    reach = each(lambda k: (f"n{k} .next_functions[0][0]-> acc", f"n{k} ._saved_weight-> p"))
    grad = (f"parameter p : {PARAMETER}", "p .grad-> g", "g * 900 @6", "autograd acc : AccumulateGrad", "acc .variable-> p")
    assert outcome(heap(*LOSSES, *model, *each(graph), *reach, *grad)) == [
        "growing: 12 of 3864 B, 2 and 644 B a step; global m.LOSSES: m.LOSSES L[1] Tensor.grad_fn n1._saved_self;"
        " cut 1 [1] proved 3864 B"
    ]


def test_optimizer_state_that_is_replaced_is_no_news() -> None:
    snapshot = heap("module m", "m global:.opt-> opt", "optimizer opt : m.Mine", "opt .state-> s", "s ['avg']-> a", "a * 8 @6")
    assert outcome(snapshot) == []


def test_state_that_an_optimizer_makes_late_is_no_leak_and_a_list_in_it_is() -> None:
    optimizer = (
        "module m",
        "m global:.opt-> opt",
        "optimizer opt : torch.optim.adam.Adam",
        "opt .state-> s",
        "object s : defaultdict",
    )
    late = each(lambda k: (f"s [<Parameter>]-> p{k}", f"object p{k} : dict", f"p{k} ['avg']-> a{k}", f"a{k} * 8 @{k}"))
    assert outcome(heap(*optimizer, *late)) == []
    history = ("s [<Parameter>]-> p", "object p : dict", "p ['history']-> h", *each(lambda k: kept("h", k, 8)))
    assert outcome(heap(*optimizer, *history)) == [
        "growing: 6 of 48 B, 1 and 8 B a step; global m.opt: m.opt opt.state s[<Parameter>] p['history'] h[1];"
        " cut 4 [1] proved 48 B"
    ]


def test_the_history_that_lbfgs_limits_is_no_leak() -> None:
    optimizer = (
        "module m",
        "m global:.opt-> opt",
        "optimizer opt : torch.optim.lbfgs.LBFGS",
        "opt .state-> s",
        "object s : defaultdict",
    )
    history = ("s [<Parameter>]-> p", "object p : dict", "p ['old_dirs']-> h", "object h : list", *each(lambda k: kept("h", k, 8)))
    assert outcome(heap(*optimizer, *history)) == []


def test_a_module_that_each_step_makes() -> None:
    made = each(lambda k: (f"module plugin_{k}", f"plugin_{k} global:.T-> t{k}", f"t{k} * 64 @{k}"))
    assert outcome(heap(*made)) == ["growing: 6 of 384 B, 1 and 64 B a step; global plugin_1.T: plugin_1.T; cut 0 .T proved 384 B"]


def test_cycles_below_the_blamed_references_are_cut_with_them() -> None:
    def packed(k: int) -> tuple[str, ...]:
        node = (f"autograd n{k} : ExpBackward0", f"t{k} .grad_fn-> n{k}", f"n{k} ._saved_result-> b{k}")
        back = (f"object b{k} : tuple", f"b{k} [1]-> x{k}", f"x{k} * 640 @{k}", f"x{k} .grad_fn-> n{k}")
        return (f"L [{k}]-> t{k}", f"t{k} * 4 @{k}", *node, *back)

    assert outcome(heap(*LOSSES, *each(packed))) == [
        "growing: 12 of 3864 B, 2 and 644 B a step; global m.LOSSES: m.LOSSES L[1] Tensor.grad_fn n1._saved_result b1[1];"
        " cut 1 [1] proved 3864 B (with 6 more references: Tensor.grad_fn)"
    ]


def test_copies_of_a_model_are_new_models() -> None:
    def copy(k: int) -> tuple[str, ...]:
        net = (f"L [{k}]-> net{k}", f"model net{k} : m.Net", f"net{k} ._modules-> mods{k}", f"mods{k} ['a']-> lay{k}")
        layer = (f"model lay{k} : torch.nn.modules.Linear", f"lay{k} ._parameters-> ps{k}", f"ps{k} ['weight']-> p{k}")
        return (*net, *layer, f"parameter p{k} : {PARAMETER}", f"p{k} * 100 @{k}")

    assert outcome(heap("module m", "m global:.EMA-> L", *each(copy))) == [
        "growing: 6 of 600 B, 1 and 100 B a step; global m.EMA:"
        " m.EMA L[1] net1._modules mods1['a'] lay1._parameters ps1['weight']; cut 1 [1] proved 600 B"
    ]


def test_what_hangs_below_a_kept_metric_is_one_leak_with_it() -> None:
    snapshot = heap(
        "module m",
        "m global:.LAST-> d",
        "object d : dict",
        "d ['aux']-> T",
        "T * 4 @6",
        "T .grad_fn-> a",
        "a ._saved_self-> h",
        "h * 640 @6",
    )
    assert outcome(snapshot) == [
        "lingering: 2 of 644 B, 2 and 644 B a step; global m.LAST: m.LAST d['aux'] Tensor.grad_fn a._saved_self;"
        " cut 1 ['aux'] proved 644 B"
    ]


def closure(k: int) -> tuple[str, ...]:
    """A function that calls itself, and closes over a tensor."""
    own = (
        f"function walk_{k}",
        f"walk_{k} closure:.__closure__[0]-> c{k}",
        f"object c{k} : cell",
        f"c{k} .cell_contents-> walk_{k}",
    )
    return (
        *own,
        f"walk_{k} closure:.__closure__[1]-> b{k}",
        f"object b{k} : cell",
        f"b{k} .cell_contents-> t{k}",
        f"t{k} * 8 @{k}",
    )


def test_a_cycle_that_gc_would_free() -> None:
    assert outcome(heap(*each(closure), garbage="t1 t2 t3 t4 t5 t6")) == [
        "until-gc: 6 of 48 B, 1 and 8 B a step; reference-cycle unreachable reference cycle:"
        " walk_1.__closure__[0] c1.cell_contents walk_1.__closure__[1] b1.cell_contents; cut 1 .cell_contents proved 48 B"
    ]


def test_a_cycle_like_one_that_gc_took_before_comes_back() -> None:
    died = Death(3, 4, 8, collected=True)
    assert [line[:26] for line in outcome(heap(*closure(6), garbage="t6"), deaths=(died,))] == ["until-gc: 1 of 8 B, 1 and "]
    assert [line[:27] for line in outcome(heap(*closure(6), garbage="t6"))] == ["lingering: 1 of 8 B, 1 and "]
    assert outcome(heap(*closure(3), garbage="t3")) == []


def test_a_cycle_that_only_native_code_closes() -> None:
    def leaf(k: int) -> tuple[str, ...]:
        gradient = (
            f"p{k} .grad-> g{k}",
            f"p{k} * 64 @{k}",
            f"g{k} * 64 @{k}",
            f"g{k} .grad_fn-> n{k}",
            f"autograd n{k} : CopyBackwards",
        )
        return (*gradient, f"n{k} .next_functions[0][0]-> m{k}", f"autograd m{k} : PowBackward0", f"m{k} ._saved_self-> p{k}")

    assert outcome(heap(*each(leaf))) == [
        "growing: 12 of 768 B, 2 and 128 B a step; native-cycle cycle that C++ closes:"
        " Tensor.grad Tensor.grad_fn n1.next_functions[0][0] m1._saved_self closing on 0; cut 0 .grad proved 768 B"
    ]


def test_two_cycles_through_one_object_take_two_cuts() -> None:
    def twice(k: int) -> tuple[str, ...]:
        first = (f"object a{k} : m.A", f"a{k} .b-> b{k}", f"b{k} .a-> a{k}", f"a{k} .c-> c{k}", f"c{k} .a-> a{k}")
        return (*first, f"object b{k} : m.B", f"object c{k} : m.C", f"b{k} .t-> t{k}", f"t{k} * 8 @{k}", f"c{k} .t-> t{k}")

    assert outcome(heap(*each(twice), garbage="t1 t2 t3 t4 t5 t6")) == [
        "until-gc: 6 of 48 B, 1 and 8 B a step; reference-cycle unreachable reference cycle: b1.a a1.b b1.t; cut 0 .a proved 48 B"
    ]


def layers_on_ctx(k: int, layers: int = 5) -> Iterable[str]:
    """Nodes of one graph, each with its own output on its ctx; the graph leads from one to the next."""
    for n in range(layers):
        yield from (f"autograd c{k}_{n} : m.SwishBackward", f"c{k}_{n} attribute:.y-> y{k}_{n}", f"y{k}_{n} * 8 @{k}")
        yield from (f"y{k}_{n} .grad_fn-> c{k}_{n}", f"c{k}_{n} attribute:.s-> s{k}_{n}", f"s{k}_{n} * 8 @{k}")
        if n:
            yield f"c{k}_{n - 1} .next_functions[0][0]-> c{k}_{n}"


def test_a_cycle_in_every_layer_is_one_leak_and_the_cut_is_made_in_each() -> None:
    assert outcome(heap(*each(layers_on_ctx))) == [
        "growing: 60 of 480 B, 10 and 80 B a step; native-cycle cycle that C++ closes: Tensor.grad_fn c1_0.y closing on 0;"
        " cut 1 .y proved 480 B"
    ]


def test_cycles_of_another_kind_below_lose_an_edge_each() -> None:
    def hooked(k: int) -> Iterable[str]:
        yield from (*layers_on_ctx(k, 1), f"c{k}_0 .next_functions[0][0]-> n{k}", f"autograd n{k} : ReluBackward0")
        yield from (f"n{k} hook:.hooks-> h{k}", f"function h{k}", f"h{k} .cell_contents-> t{k}", f"t{k} * 8 @{k}")
        yield f"t{k} .grad_fn-> n{k}"

    (line,) = outcome(heap(*each(hooked)))
    assert line.endswith("cut 1 .y proved 144 B")


def test_what_only_native_code_owns() -> None:
    assert outcome(heap(*each(lambda k: (f"w{k} * 64 @{k}",)))) == [
        "growing: 6 of 384 B, 1 and 64 B a step; native an owner in C++ that no reader can name: C++<owns>;"
        " cut 0 <owns> not-tried 384 B (no reference that can be cut holds it)"
    ]


def test_what_a_collection_frees_though_no_reference_to_it_can_be_read() -> None:
    """Saved values of a graph, on a torch that does not show them."""
    assert outcome(heap(*each(lambda k: (f"w{k} * 64 @{k}",)), garbage="w1 w2 w3 w4 w5 w6")) == [
        "until-gc: 6 of 384 B, 1 and 64 B a step; reference-cycle unreachable reference cycle: C++<owns>;"
        " cut 0 <owns> not-tried 384 B (no reference that can be cut holds it)"
    ]


def test_a_function_that_something_outside_the_heap_holds() -> None:
    def registered(k: int) -> tuple[str, ...]:
        return (f"function f{k}", f"f{k} closure:.__closure__-> c{k}", f"c{k} .cell_contents-> t{k}", f"t{k} * 8 @{k}")

    assert outcome(heap(*each(registered))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; native an owner in C++ that no reader can name: C++<owns> f1.__closure__"
        " c1.cell_contents; cut 1 .__closure__ proved 48 B"
    ]


def test_threads_that_each_keep_one() -> None:
    def worker(k: int) -> tuple[str, ...]:
        return (f"thread worker{k}", f"worker{k} local:.item-> t{k}", f"t{k} * 8 @{k}")

    assert outcome(heap(*each(worker))) == [
        "growing: 6 of 48 B, 1 and 8 B a step; thread worker1.item: worker1.item; cut 0 .item proved 48 B"
    ]
    assert outcome(heap(*worker(6))) == [
        "lingering: 1 of 8 B, 1 and 8 B a step; thread worker6.item: worker6.item; cut 0 .item proved 8 B"
    ]


def test_three_boundaries_prove_nothing() -> None:
    assert outcome(heap(*LOSSES, *each(lambda k: kept("L", k), (0, 1, 2))), first=0, last=2) == [
        "lingering: 3 of 192 B, 1 and 64 B a step; global m.LOSSES: m.LOSSES L[0]; cut 1 [0] proved 192 B"
    ]


def test_only_the_edges_of_chosen_chains_are_labelled() -> None:
    asked: list[Edge] = []

    def label(edges: Sequence[Edge]) -> Sequence[Edge]:
        asked.extend(edges)
        return edges

    lines = [line for k in range(50) for line in (f"m global:.a{k}-> o{k}", f"o{k} [0]-> t")]
    judge(heap("module m", *lines, "t * 8 @6"), label=label, prove=None, owners=lambda ids: {}, history=History(1, 6))
    assert [(edge.kind, edge.name) for edge in asked] == [
        (EdgeKind.GLOBAL, ".a0"),
        (EdgeKind.ITEM, "[0]"),
        (EdgeKind.STORAGE, ""),
    ]


def test_nothing_watched_is_nothing_to_say() -> None:
    found = judge(Snapshot({}, (), (), {}), label=lambda edges: edges, prove=None, owners=lambda ids: {}, history=History(1, 6))
    assert (found.survivors, found.known, found.gaps) == ((), (), ())

"""Reports made by hand, for the tests of everything that reads one."""

from __future__ import annotations

from dataclasses import replace

from lifetime.heap.model import (
    Chain,
    Cut,
    Environment,
    Gap,
    GcState,
    Known,
    Layer,
    Leaking,
    Link,
    Owners,
    Proof,
    Report,
    Root,
    RootKind,
    Site,
    SiteVerdict,
    Step,
    Survivor,
    TensorFacts,
    Verdict,
)
from lifetime.report.fold import AGAIN


def survivor(fingerprint: str = "a1b2c3d4", size: int = 2624, verdict: Verdict = Verdict.GROWING) -> Survivor:
    """A list in a module keeps a tensor whose graph keeps a saved tensor."""
    links = (
        Link("train", "module", ".LOSSES", "global", "train.py:3", Leaking.NO, "a module lives as long as the program"),
        Link("list", "builtins.list", "[0]", "item"),
        Link("Tensor", "torch.Tensor", ".grad_fn", "grad_fn", None, Leaking.UNKNOWN, ""),
        Link("MulBackward0", "torch.autograd.MulBackward0", "._saved_self", "saved", None, Leaking.YES, "of an earlier step"),
    )
    return Survivor(
        fingerprint=fingerprint,
        verdict=verdict,
        count=6,
        count_per_step=1.0,
        bytes=6 * size,
        bytes_per_step=size,
        tensor=TensorFacts("Tensor", (41, 16), "float32", "cpu", size),
        chain=Chain(Root(RootKind.GLOBAL, "train.LOSSES", "train.py:3"), links, None, "train.LOSSES[0].grad_fn._saved_self"),
        known=None,
        owners=Owners(Layer(1, 1), Layer(2, 2), Layer(2, 2)),
        cut=Cut(2, ".grad_fn", 6 * size, Proof.PROVED),
        hint="append loss.detach() (or loss.item()) instead of loss",
    )


def layered(layers: int = 12) -> Survivor:
    """The same, through the graph of many equal layers."""
    pairs = [
        (
            Link("AddmmBackward0", "torch.autograd.AddmmBackward0", f".next_functions[{k % 3}][0]", "next"),
            Link("ReluBackward0", "torch.autograd.ReluBackward0", ".next_functions[0][0]", "next"),
        )
        for k in range(layers)
    ]
    one = survivor("beef0001", 9 << 20)
    links = (*one.chain.links[:3], *(link for pair in pairs for link in pair), one.chain.links[3])
    return replace(one, chain=replace(one.chain, links=links))


def ring() -> Survivor:
    """An output on the ctx of its own node: a cycle, with a wide name in it."""
    links = (
        Link("Tensor", "torch.Tensor", ".grad_fn", "grad_fn"),
        Link("KeepBackward", "train.größe.KeepBackward", ".out", "attribute", "train.py:33", Leaking.YES, "of an earlier step"),
    )
    return replace(
        survivor("beef0002", 2 << 20, Verdict.UNTIL_GC),
        chain=Chain(Root(RootKind.REFERENCE_CYCLE, ""), links, 0),
        cut=Cut(1, ".out", 12 << 20, Proof.NOT_TRIED, "fork is not possible here"),
        owners=None,
        gaps=(Gap("owners", "calibration failed"),),
        hint="save the output with ctx.save_for_backward",
    )


def hanging() -> Survivor:
    """A function that calls itself and closes over a tensor: once around the cycle, then down."""
    links = (
        Link("walk", "function", ".__closure__[0]", "closure", "train.py:20"),
        Link("cell", "cell", ".cell_contents", "cell"),
        Link("walk", "function", ".__closure__[1]", "closure", "train.py:20", reason=f"{AGAIN}: here the cycle closes"),
        Link("cell", "cell", ".cell_contents", "cell"),
    )
    return replace(ring(), fingerprint="beef0004", chain=Chain(Root(RootKind.REFERENCE_CYCLE, "a cycle"), links, None))


def native() -> Survivor:
    """Nothing of Python between a C++ owner and the tensor; a known holder."""
    return replace(
        survivor("beef0003", 100, Verdict.LINGERING),
        count=1,
        chain=Chain(Root(RootKind.NATIVE, "autocast weight cache"), (), None),
        cut=Cut(0, "torch.clear_autocast_cache()", 0, Proof.DISPROVED, "something else holds it"),
        known=Known("autocast", "the weight cache lives until autocast ends", "pytorch/pytorch#48049"),
        hint="",
    )


def report(*survivors: Survivor) -> Report:
    environment = Environment("3.11.7", "2.13.0", "cpu", GcState(True, "off"), 0, 1, ("train.py", "--lr", "1"))
    site = Site("LT001", "train.py", 9, "Recompute.backward", 6, 0, SiteVerdict.CONFIRMED, ("a1b2c3d4",), 2624, 15744)
    steps = tuple(Step(k, 10_000 + 2624 * k) for k in range(7))
    return Report(environment, steps, (site,), survivors or (survivor(),), (Gap("c10d", "not initialised"),))


def rich_report() -> Report:
    """One of every shape: a list, folded layers, rings with and without a tail, a C++ owner."""
    return report(layered(), survivor(), ring(), hanging(), native())


def many(count: int) -> Report:
    return report(*(replace((layered, ring)[k % 2](), fingerprint=f"{k:08x}") for k in range(count)))

"""A small report made by hand, for the tests of everything that reads one."""

from __future__ import annotations

from lifetime.heap.model import (
    Chain,
    Cut,
    Environment,
    Gap,
    GcState,
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


def report(*survivors: Survivor) -> Report:
    environment = Environment("3.11.7", "2.13.0", "cpu", GcState(True, "off"), 0, 1, ("train.py", "--lr", "1"))
    site = Site("LT001", "train.py", 9, "Recompute.backward", 6, 0, SiteVerdict.CONFIRMED, ("a1b2c3d4",), 2624, 15744)
    steps = tuple(Step(k, 10_000 + 2624 * k) for k in range(7))
    return Report(environment, steps, (site,), survivors or (survivor(),), (Gap("c10d", "not initialised"),))

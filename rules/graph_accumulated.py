"""LT009: a loop that collects values with their graphs."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter.accumulation import Accumulation
from lifetime.linter.detach_fix import detached
from lifetime.linter.execute import Execution
from lifetime.linter.graph_proof import Proof
from lifetime.linter.kept_graph import Kept
from lifetime.linter.model import Finding, Fix, Safety
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.sight import Sight
from lifetime.linter.statements import functions
from lifetime.linter.study import study

REASON = "whoever gets the accumulated value might back-propagate it"


class GraphAccumulated(Rule):
    """LT009: a loop adds a value that carries a graph to something that outlives the turn.

    Why: `total += loss` makes a node that refers to the last total and to the loss, so every step's graph stays until the
    total goes: nodes, parameters' AccumulateGrad nodes, and, where no backward freed them, all saved tensors. A list of
    losses or outputs does the same. Back-propagating each loss frees what it saved, not the nodes. A sum that is itself
    back-propagated is meant so.

    Fix safety: `.detach()` on the summand (not `.item()`, which waits for the device). Unsafe where the accumulated value
    is handed on, since the one who gets it might back-propagate it.

    Source: torch 2.13, "My model reports out of memory" in the notes on CUDA (`total_loss += loss`); measured by counting
    live nodes.
    """

    code = "LT009"
    name = "graph-accumulated"
    needles = (
        (rb"\.(?:manual_)?backward\s*\(", rb"\b(?:for|while)\b"),
        (rb"\.detach\(", rb"(?:cat|stack)\([^\n]*\)\.detach\(", rb"\.append\(", rb"\b(?:for|while)\b"),
        (rb"\.item\(", rb"\.eval\(\)|\.train\(\)", rb"[lL]oss\w*\(|criterion\w*\(|objective\w*\("),
    )
    bad = (
        Bad(
            """\
def train(model, loss_fn, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total / len(loader)
""",
            (7,),
            """\
def train(model, loss_fn, loader, optimizer):
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total / len(loader)
""",
        ),
        Bad(
            """\
class Trainer:
    def run(self, batches):
        for x, y in batches:
            loss = (self.model(x) - y).square().mean()
            loss.backward()
            self.history.append({"loss": loss, "size": len(x)})
""",
            (6,),
            """\
class Trainer:
    def run(self, batches):
        for x, y in batches:
            loss = (self.model(x) - y).square().mean()
            loss.backward()
            self.history.append({"loss": loss.detach(), "size": len(x)})
""",
        ),
        Bad(
            """\
import torch


def outputs(model, batches):
    kept = []
    for x in batches:
        kept.append(model(x))
    return torch.cat(kept).detach()
""",
            (7,),
            """\
import torch


def outputs(model, batches):
    kept = []
    for x in batches:
        kept.append(model(x).detach())
    return torch.cat(kept).detach()
""",
        ),
        Bad(
            """\
def train(model, loss_fn, loader):
    average = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        average = 0.9 * average + 0.1 * loss
    print(float(average))
""",
            (6,),
            """\
def train(model, loss_fn, loader):
    average = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        average = 0.9 * average + 0.1 * loss.detach()
    print(float(average))
""",
        ),
    )
    good = (
        Good(
            """\
def train(model, loss_fn, loader):
    total = 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        total += loss.item()
    return total
""",
            "a float has no graph",
        ),
        Good(
            """\
import torch


def train(model, loss_fn, loader):
    total = torch.zeros(())
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        with torch.no_grad():
            total += loss
    return total
""",
            "nothing is recorded under no_grad",
        ),
        Good(
            """\
def accumulate(model, loss_fn, micro_batches):
    total = 0
    for x, y in micro_batches:
        total += loss_fn(model(x), y)
    total.backward()
""",
            "the sum is what gets back-propagated",
        ),
        Good(
            """\
import torch


def accumulate(model, loss_fn, batches):
    losses = []
    for x, y in batches:
        losses.append(loss_fn(model(x), y))
    torch.stack(losses).mean().backward()
""",
            "the list is back-propagated as a whole",
        ),
        Good(
            """\
def train(heads, loss_fn, loader):
    for x, y in loader:
        total = 0
        for head in heads:
            total = total + loss_fn(head(x), y)
        total.backward()
""",
            "a sum of heads, begun and back-propagated in each turn",
        ),
        Good(
            """\
def losses(model, loss_fn, batches):
    total = 0
    for x, y in batches:
        total += loss_fn(model(x), y)
    return total
""",
            "the caller may well back-propagate it",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        sight = Sight(module)
        for scope in (module.tree, *functions(module)):
            grown = sight.promising(scope)
            run = study(module).walk(scope) if grown else None
            if run:
                yield from self.findings(module, sight, run, grown)

    def findings(self, module: Module, sight: Sight, run: Execution, grown: list[Accumulation]) -> Iterator[Finding]:
        proof = Proof(run)
        certain = [kept for one in grown if (kept := Kept(module, sight, run, proof, one)).is_certain()]
        for kept in certain:
            others = {own for other in certain if other is not kept for own in other.totals}
            if kept.carries(others):
                yield self.finding(module, kept.one.node, self.message(module, kept.one), fix=self.fix(module, kept))

    @staticmethod
    def fix(module: Module, kept: Kept) -> Fix | None:
        edits = detached(module, kept.one.added, kept.carries_at)
        safety = Safety.UNSAFE if kept.is_handed_on() else Safety.SAFE
        return Fix("detach what is added", safety, edits, REASON if safety is Safety.UNSAFE else "") if edits else None

    @staticmethod
    def message(module: Module, one: Accumulation) -> str:
        added = " ".join(module.text(one.added).split())
        shown = added if len(added) <= 40 else added[:37] + "..."
        return f"`{one.target}` outlives the loop's turn and `{shown}` carries a graph: every turn's graph stays alive"

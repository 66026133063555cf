"""`lifetime.trace()`, `lifetime.step()` and `lifetime.who()`: the tracer in hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING

from lifetime.errors import UsageError
from lifetime.heap.model import Report, Survivor
from lifetime.report.text import chain_text, report_text
from lifetime.report.words import cut_text, owners_text
from lifetime.tracer import probe
from lifetime.tracer.options import Options
from lifetime.tracer.steps import check
from lifetime.tracer.trace import Trace

if TYPE_CHECKING:
    import torch


class trace(ContextDecorator):
    """Traces what runs inside: `with lifetime.trace() as t: ...`, or `@lifetime.trace()` on the function that trains.

    A step is what `lifetime trace --step` says: `optimizer`, `backward`, `module:qualname`, or by default what the program
    shows; `t.step()` and `lifetime.step()` end one explicitly. After the block `t.report` is the report; it is printed to
    stderr unless `show` is false. Modules that were imported before are not searched for sites.

    Raises:
        UsageError: `step` is no step, or names a function without its module.
    """

    def __init__(
        self,
        *,
        step: str | None = None,
        warmup: int = 1,
        steps: int = 6,
        start_step: int = 0,
        gc: str = "as-is",
        prove: bool = True,
        show: bool = True,
    ) -> None:
        check(step)
        if step not in {None, "optimizer", "backward"} and ":" not in (step or ""):
            raise UsageError(f"step {step!r} names no module", f"step='{__name__}:{step}', with the module that defines it")
        if gc not in {"as-is", "off"}:
            raise UsageError(f"gc={gc!r} is not known", "gc='as-is' or gc='off'")
        if steps < 1 or warmup < 0 or start_step < 0:
            raise UsageError(f"steps={steps}, warmup={warmup}, start_step={start_step}", "at least one step must be judged")
        self.options = Options(step, warmup, steps, start_step, gc=gc, prove=prove)
        self.show = show
        self.report: Report | None = None
        self._trace: Trace | None = None

    def step(self) -> None:
        """A step ends here."""
        probe.mark()

    def finish(self) -> Report:
        """The report of what was seen until now; nothing is traced any more."""
        if self._trace is not None and self._trace.session.here:
            self._trace.finish()
        self._trace = None
        assert self.report is not None, "nothing was traced"
        return self.report

    def __enter__(self) -> trace:
        self.report = None
        self._trace = Trace(self.options, self._deliver)
        self._trace.arm()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._trace is not None:
            self.finish()

    def _deliver(self, report: Report, moment: str) -> None:
        self.report = report
        if self.show:
            print("\n".join(report_text(report)), file=sys.stderr)


def step() -> None:
    """A step ends here: what a traced program can say itself. Costs nothing where nothing is traced."""
    probe.mark()


def who(tensor: torch.Tensor, *, show: bool | None = None) -> Survivor | None:
    """Who keeps `tensor` alive now: the chain to its storage. None if only the caller does.

    Printed if `show`; by default everywhere but in a notebook that draws the value of a cell (`%load_ext lifetime`). Nothing is
    counted over steps, so the verdict says only that it is alive.
    """
    import torch as here

    from lifetime.tracer.heap import holder, storage_of

    if not isinstance(tensor, here.Tensor):
        raise TypeError(f"who() takes a tensor, not {type(tensor).__name__}")
    storage = storage_of(tensor)
    del tensor  # this frame must not be found among the holders
    found = holder(storage)
    if show or (show is None and (found is None or not _is_drawn())):
        print("\n".join(_told(found)))
    return found


def _is_drawn() -> bool:
    """The notebook extension is loaded: it shows the value of a cell."""
    return bool(getattr(sys.modules.get("lifetime.notebook"), "is_loaded", False))


def _told(found: Survivor | None) -> Iterator[str]:
    if found is None:
        yield "nobody else holds it"
        return
    yield from chain_text(found)
    yield f"  Cut: {cut_text(found)}"
    yield f"  Owners: {owners_text(found.owners)}"
    if found.chain.expression:
        yield f"  In Python: {found.chain.expression}"
    if found.hint:
        yield f"  Hint: {found.hint}"

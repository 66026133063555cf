"""LT000."""

from __future__ import annotations

from collections.abc import Iterator

from lifetime.linter import registry, suppress
from lifetime.linter.model import Edit, Finding, Fix, Safety, Severity, Span
from lifetime.linter.module import Module
from lifetime.linter.rule import Bad, Good, Rule
from lifetime.linter.suppress import Keep

HARVEST = """\
import torch

class Recompute(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        leaves = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.run(*leaves)
        torch.autograd.backward(out, grad)
"""
RELEASE = "        for leaf in leaves:\n            leaf.grad = None\n"


class UnusedKeep(Rule):
    """LT000: an excuse that excuses nothing, gives no reason or names no rule.

    Why: an excuse outlives what it excused, and then hides the next defect on its line. One without a reason leaves the next
    reader to guess whether it may go. So an excuse has one form, `# lifetime: keep[LT001] reason`, on any line of the
    statement or alone on the line above it; anything else excuses nothing and is reported. An excuse is judged only where
    the rule it names has run, and cannot itself be excused.

    Fix safety: safe. Only comments change: an excuse that is not used goes, and of several codes those that are not used.
    A missing reason or an unknown code is left to you.

    Source: ruff's RUF100 and the requests for reasons beside it (astral-sh/ruff#10070, #15884).
    """

    code = "LT000"
    name = "unused-keep"
    severity = Severity.WARNING
    last = True
    needles = ((rb"lifetime\s*:\s*keep",),)
    bad = (
        Bad("x = 1  # lifetime: keep[LT001] read by the logger\n", lines=(1,), fixed="x = 1\n"),
        Bad("# lifetime: keep[LT001,LT005] read by the logger\nx = 1  # kept\n", lines=(1,), fixed="x = 1  # kept\n"),
        Bad("x = 1  # lifetime: keep[LT001] old  # noqa: E501\n", lines=(1,), fixed="x = 1  # noqa: E501\n"),
        Bad("x = 1  # lifetime: keep\n", lines=(1,)),
        Bad("x = 1  # lifetime: keep[LT001\n", lines=(1,)),
        Bad("x = 1  # lifetime: keep[LT999] no such rule\n", lines=(1,)),
        Bad(
            HARVEST + "        return (x.grad for x in leaves)  # lifetime: keep[LT001]\n",
            lines=(10,),
            also=("LT001",),
        ),
    )
    good = (
        Good(
            HARVEST + "        return tuple(x.grad for x in leaves)  # lifetime: keep[LT001] leaves are pooled\n",
            because="the excuse is used and gives its reason",
        ),
        Good('text = "# lifetime: keep[LT001]"\n', because="text in a string is no comment"),
        Good("# lifetime: keeps tensors in mind\nx = 1\n", because="it is prose about lifetimes, not an excuse"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        raw = [finding for found in module.raw.values() for finding in found]
        for keep in suppress.keeps(module):
            unused = tuple(c for c in keep.codes if _has_run(module, c) and not suppress.matches(keep, c, raw))
            if complaint := _complaint(keep, unused):
                fix = _removal(module, keep, unused) if keep.is_valid and unused else None
                yield self._at(module, keep.span, complaint, fix)

    def _at(self, module: Module, span: Span, message: str, fix: Fix | None) -> Finding:
        around = [f for f in module.functions if f.lineno <= span.start_line <= (f.end_lineno or f.lineno)]
        inner = max(around, key=lambda f: f.lineno, default=None)
        function = module.qualified(inner) if inner else None
        return Finding(self.code, self.name, self.severity, module.path, span, function, message, fix=fix)


def _has_run(module: Module, selector: str) -> bool:
    return any(selector in (rule.code, rule.name) and rule.code in module.raw for rule in registry.load())


def _complaint(keep: Keep, unused: tuple[str, ...]) -> str:
    """What is wrong with an excuse; empty when nothing is."""
    names = {name for rule in registry.load() if not rule.last for name in (rule.code, rule.name)}
    unknown = [code for code in keep.codes if code not in names]
    if not keep.codes:
        return "this excuse names no rule: write `# lifetime: keep[LT001] reason`"
    if unknown:
        return f"this excuse names {_list(unknown)}, which is no rule that can be excused"
    if not keep.reason:
        return f"this excuse for {_list(keep.codes)} gives no reason, so it excuses nothing"
    return f"this excuse for {_list(unused)} excuses nothing" if unused else ""


def _list(codes: tuple[str, ...] | list[str]) -> str:
    return ", ".join(codes)


def _removal(module: Module, keep: Keep, unused: tuple[str, ...]) -> Fix:
    row, line = keep.span.start_line, module.lines[keep.span.start_line - 1]
    used = [code for code in keep.codes if code not in unused]
    if used:
        start = line.index("[", keep.span.start_column) + 1
        edit = Edit(Span(row, start, row, line.index("]", start)), _list(used))
        return Fix(f"drop {_list(unused)} from the excuse", Safety.SAFE, (edit,))
    before, after = line[: keep.span.start_column], line[keep.span.end_column :]
    if after.strip():
        span = Span(row, len(before), row, len(line) - len(after.lstrip()))
    elif before.strip():
        span = Span(row, len(before.rstrip()), row, len(line))
    else:
        span = Span(row, 0, row + 1, 0) if row < len(module.lines) else Span(row, 0, row, len(line))
    return Fix("remove the unused excuse", Safety.SAFE, (Edit(span, ""),))

"""The sentences that every form of a report shares. Text of foreign origin leaves here on one line and printable."""

from __future__ import annotations

import math
import re
from itertools import groupby

from lifetime.heap.model import (
    Chain,
    Leaking,
    Link,
    Owners,
    Proof,
    Report,
    RootKind,
    Site,
    SiteVerdict,
    Survivor,
    TensorFacts,
    Verdict,
)
from lifetime.report.clean import middle_out, one_line
from lifetime.report.view import Mark
from lifetime.units import bytes_text, plural

ROOTS = {
    RootKind.REFERENCE_CYCLE: "none, a reference cycle that gc would free",
    RootKind.NATIVE_CYCLE: "none, a cycle that only C++ closes: gc never frees it",
}
CYCLES = frozenset(ROOTS)
MEANING = {
    Verdict.GROWING: "more each step, for ever",
    Verdict.UNTIL_GC: "more each step, until the garbage collector runs",
    Verdict.LINGERING: "replaced each step, but alive into the next",
}
LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
TORCH = re.compile(
    r"<frozen|<string>|(?:^|[\\/])torch[\\/](?:_|nn|autograd|amp|cuda|distributed|functional|fx|library|optim|overrides|utils)"
)
"""A place in torch itself or in the interpreter, and not in a folder of the user's that is called torch."""
NOTHING = "nothing outlives its step"
_BUNDLES = frozenset({"tuple", "list", "dict"})
_ITEMS = frozenset({"item", "key"})
_DTYPE_BITS = re.compile(r"(?:complex|b?float|u?int)(\d{1,3})")


def summary(report: Report) -> str:
    """One line: how many survivors of which kind, their bytes, and over how many steps they were seen."""
    kinds = []
    for verdict in Verdict:
        group = [s for s in report.survivors if s.verdict is verdict]
        if group:
            total, a_step = sum(s.bytes for s in group), sum(s.bytes_per_step for s in group)
            slope = "" if verdict is Verdict.LINGERING else f", +{bytes_text(a_step)} a step"
            kinds.append(f"{len(group)} {verdict.value} ({bytes_text(total)}{slope})")
    what = f"{plural(len(report.survivors), 'survivor')}: {', '.join(kinds)}" if kinds else nothing(report)
    where = f"{plural(len(report.steps), 'step')} seen on {one_line(report.environment.device, 40)}"
    return f"lifetime: {what}; {where}, gc {one_line(report.environment.gc.mode, 20)}"


def headline(report: Report) -> str:
    """The summary without its numbers of bytes."""
    kinds = [(sum(s.verdict is verdict for s in report.survivors), verdict.value) for verdict in Verdict]
    told = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
    what = f"{plural(len(report.survivors), 'survivor')}: {told}" if told else nothing(report)
    return what[:1].upper() + what[1:]


def nothing(report: Report) -> str:
    """What a report without survivors says: that all is well only where something was judged."""
    failed = next((gap.why for gap in report.gaps if gap.where == "capture"), None)
    if failed is not None:
        return f"nothing could be judged: {one_line(failed, 80)}"
    unseen = not report.steps or any(gap.where == "steps" and gap.why.startswith("0 of ") for gap in report.gaps)
    return "nothing could be judged, no step after warm-up was seen" if unseen else NOTHING


def amount(survivor: Survivor) -> str:
    slope = "" if survivor.verdict is Verdict.LINGERING else f", +{bytes_text(survivor.bytes_per_step)} a step"
    return f"{bytes_text(survivor.bytes)} in {plural(survivor.count, 'storage')}{slope}"


def command(report: Report) -> str:
    return one_line(" ".join(report.environment.command), 300)


def setting(report: Report) -> str:
    """Where the report was made: versions, device, rank."""
    environment = report.environment
    torch = f", torch {environment.torch}" if environment.torch else ""
    rank = f", rank {environment.rank} of {environment.world_size}" if environment.world_size > 1 else ""
    held = ", off while observed" if environment.gc.mode == "off" and environment.gc.enabled else ""
    gc = f"automatic gc {'on' if environment.gc.enabled else 'off'} in the program{held}"
    return one_line(f"Python {environment.python}{torch}, {environment.device}, {gc}{rank}", 300)


def word(survivor: Survivor, mark: Mark | None = None) -> str:
    """The verdict in a word; `held` where nothing was judged, and in the past for what is gone."""
    now = survivor.verdict.value if survivor.judged else "held"
    return f"gone, was {now}" if mark is not None and mark.gone else now


def own_variables(survivor: Survivor) -> str | None:
    """The variables, by function, where nothing but a loop's own hold what lingers: the next step rebinds them."""
    links, end = survivor.chain.links, survivor.cut.link
    if survivor.verdict is not Verdict.LINGERING or not survivor.judged or not 0 <= end < len(links):
        return None
    is_local = links[0].kind == "local" and all(link.holder_type.rpartition(".")[2] in _BUNDLES for link in links[1 : end + 1])
    if not is_local and not (end == 0 and links[0].kind == "global" and links[0].holder == "__main__"):
        return None
    functions: dict[str, list[str]] = {}
    for name in (f"{links[0].holder}{links[0].reference}", *survivor.cut.also):
        function, _, variable = name.rpartition(".")
        if function:  # else another name of one that is told
            functions.setdefault(function, []).append(variable)
    return "; ".join(f"{one_line(function, 80)}: {one_line(', '.join(names), 120)}" for function, names in functions.items())


def tensor_status(survivor: Survivor) -> str:
    """Whether the tensor is leaking, in the words of a holder's status."""
    if not survivor.judged:
        return "UNKNOWN (asked who holds it, not whether it should be alive)"
    if own_variables(survivor) is not None:
        return "NO (rebound by the next step)"
    return "YES (it outlived its step)"


def site_text(site: Site) -> str:
    captured = f", {site.captured_hits} under capture" if site.captured_hits else ""
    held = f", {bytes_text(site.bytes_per_step)} a step" if site.bytes_per_step else ""
    name = f" in {one_line(site.function, 80)}" if site.function else ""
    verdict = "not judged" if site.verdict is SiteVerdict.NOT_REACHED and site.hits else site.verdict.value
    place = f"{middle_out(site.path, 120)}:{site.line}: {one_line(site.code, 20)} {verdict}"
    return f"{place}{name}: {plural(site.hits, 'hit')}{captured}{held}"


def short_place(where: str) -> str:
    """A place with its file's last two names: pictures have no room for more, the text beside them has all of it.

    >>> short_place("/env/site-packages/torch/nn/module.py:1778"), short_place("train.py:3")
    ('nn/module.py:1778', 'train.py:3')
    """
    return middle_out("/".join(where.replace("\\", "/").split("/")[-2:]), 46)


def told_sites(report: Report) -> tuple[tuple[Site, ...], int]:
    """The sites worth a line, the worst verdict first, and how many of installed libraries were never reached."""
    shown = [s for s in report.sites if s.verdict is not SiteVerdict.NOT_REACHED or not LIBRARY.search(s.path)]
    order = list(SiteVerdict)
    return tuple(sorted(shown, key=lambda site: order.index(site.verdict))), len(report.sites) - len(shown)


def root_text(chain: Chain, short: bool = False) -> str:
    """The root in words; `short` leaves only the end of its place, as in pictures."""
    if chain.root.kind in ROOTS:
        return ROOTS[chain.root.kind]
    place = chain.root.where and (short_place(chain.root.where) if short else middle_out(chain.root.where, 100))
    where = f" ({place})" if place else ""
    return f"{chain.root.kind.value} {one_line(chain.root.name, 120)}{where}"


def holder_text(link: Link) -> str:
    """The holder, and its type where the name does not say it already."""
    holder, kind = one_line(link.holder, 120), one_line(link.holder_type, 120)
    return kind if kind.endswith(holder) else f"{holder} ({kind})"


def reference_text(link: Link) -> str:
    return middle_out(link.reference, 120)


def blamed(survivor: Survivor) -> str:
    """The blamed reference with the object that has it, and the root it hangs from."""
    chain, cut = survivor.chain, survivor.cut
    if not 0 <= cut.link < len(chain.links):
        return middle_out(f"{chain.root.name} : {cut.reference}", 120)
    reference = cut_reference(survivor)
    holder = chain.links[cut.link].holder
    start = "cycle" if chain.root.kind in CYCLES else chain.root.name
    own = middle_out(f"{holder}{reference}", 70)
    return own if start in own else f"{middle_out(start, 50)} : {own}"


def status_text(link: Link) -> str:
    return link.leaking.value.upper() + (f" ({one_line(link.reason)})" if link.reason else "")


def shape_text(tensor: TensorFacts) -> str:
    shown = " x ".join(map(str, tensor.shape[:8])) + (" x ..." if len(tensor.shape) > 8 else "")
    return one_line(f"{shown or 'scalar'} {tensor.dtype} {tensor.device}", 120)


def size_text(tensor: TensorFacts) -> str:
    """The storage's bytes, and the tensor's own where it is a small view.

    >>> size_text(TensorFacts("Tensor", (), "float32", "cpu", 512)), size_text(TensorFacts("Tensor", (2,), "float32", "cpu", 8))
    ('4 B in a storage of 512 B', '8 B')
    """
    whole = bytes_text(tensor.storage_bytes)
    bits = _DTYPE_BITS.match(tensor.dtype)
    each = int(bits.group(1)) // 8 if bits else 1 if tensor.dtype == "bool" else 0
    own = math.prod(tensor.shape) * each
    return f"{bytes_text(own)} in a storage of {whole}" if 0 < own < tensor.storage_bytes else whole


def stack_text(tensor: TensorFacts, most: int = 12) -> tuple[str, ...]:
    """The calls that allocated it, the innermost first; of a run of calls in torch the first one and a count."""
    told: list[str] = []
    for in_torch, run in groupby(tensor.stack, key=lambda call: TORCH.search(call) is not None):
        calls = [one_line(call, 240) for call in run]
        folded = in_torch and len(calls) > 2
        told += [calls[0], f"... {plural(len(calls) - 1, 'more call')} in torch"] if folded else calls
    return (*told[:most], f"+ {len(told) - most} more") if len(told) > most else tuple(told)


def cut_text(survivor: Survivor) -> str:
    """The blamed reference, what cutting it frees, and whether that was shown."""
    cut = survivor.cut
    why = f": {one_line(cut.why)}" if cut.why else ""
    if not survivor.judged and cut.proof is Proof.DISPROVED:
        others = ", ".join(also_text(survivor)) or "another holder"
        return f"{middle_out(cut.reference, 120)} alone does not free it: {others} {'has' if len(cut.also) < 2 else 'have'} it too"
    of = f" of {cut.count}" if cut_reference(survivor) != cut.reference else ""
    freed = _freed(survivor) if why else freed_text(survivor)
    return f"{middle_out(cut_reference(survivor), 120)}{of} {freed} ({cut.proof.value}{why})"


def cut_reference(survivor: Survivor) -> str:
    """The blamed reference; `[*]` for one of many items."""
    cut, links = survivor.cut, survivor.chain.links
    is_item = 0 <= cut.link < len(links) and links[cut.link].kind in _ITEMS
    return "[*]" if cut.count > 1 and is_item and cut.reference.startswith("[") else cut.reference


def also_text(survivor: Survivor, most: int = 3) -> tuple[str, ...]:
    """The other references that had to go with the blamed one."""
    also = survivor.cut.also
    told = tuple(middle_out(one, 160) for one in also[:most])
    return (*told, f"{len(also) - most} more") if len(also) > most else told


def freed_text(survivor: Survivor) -> str:
    """What the cut frees, and how many references beside the blamed one it takes."""
    also = len(survivor.cut.also)
    return _freed(survivor) + (f" with {plural(also, 'more reference')}" if also else "")


def _freed(survivor: Survivor) -> str:
    shown = {
        Proof.PROVED: "frees",
        Proof.NOT_TRIED: "would free",
        Proof.DISPROVED: "does not free all: freed",
    }
    return f"{shown[survivor.cut.proof]} {bytes_text(survivor.cut.frees_bytes)}"


def owners_text(owners: Owners | None) -> str:
    """Owners named against owners counted, a layer each; says how many are missing."""
    if owners is None:
        return "unknown"
    layers = (("wrapper", owners.wrapper), ("tensor", owners.tensor), ("storage", owners.storage))
    missing = [
        f"{layer.counted - layer.named} of {layer.counted} in the {name}" for name, layer in layers if layer.named < layer.counted
    ]
    counts = ", ".join(f"{name} {layer.named} of {layer.counted}" for name, layer in layers if layer.counted)
    return f"unknown C++ owner: {', '.join(missing)}" if missing else f"all named ({counts})"


def suspect_links(chain: Chain) -> frozenset[int]:
    """Indexes of the references between the last holder that is not leaking and the first that is."""
    status = [link.leaking for link in chain.links]
    first = max((k for k, s in enumerate(status) if s is Leaking.NO), default=0)
    last = next((k for k, s in enumerate(status) if s is Leaking.YES), len(status))
    return frozenset(range(first, last))

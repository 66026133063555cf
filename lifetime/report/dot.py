"""The reference graph in DOT: a root on top, holders below it, the tensor at the end, one cluster a leak.

Labels are ASCII and fonts are Helvetica and Courier: the embedded engine has metrics for those alone. Colours are Okabe and
Ito's, told apart by colour-blind readers; in grey, line style and words say the same.
"""

from __future__ import annotations

from html import escape

from graphviz import Digraph

from lifetime.heap.model import Link, Proof, Report, RootKind, Survivor, Verdict
from lifetime.report.text import root_text, summary, suspect_links
from lifetime.units import bytes_text, plural

SHOWN = 12
INK, PAPER, SOFT = "#1b1b1b", "#ffffff", "#5a5a5a"
SUSPECT, CUT, TENSOR, NODE, PLAIN = "#d55e00", "#b0004e", "#fde8d0", "#dcebf7", "#f3f3f3"
VERDICT_COLOURS = {Verdict.GROWING: "#d55e00", Verdict.UNTIL_GC: "#0072b2", Verdict.LINGERING: "#5a5a5a"}


def report_dot(report: Report, most: int = SHOWN) -> str:
    """DOT source of the report's first `most` survivors; the rest is a count. The same report gives the same text."""
    graph = Digraph("lifetime")
    graph.attr(rankdir="TB", bgcolor=PAPER, fontname="Helvetica", fontcolor=INK, nodesep="0.25", ranksep="0.35", labelloc="t")
    graph.attr(label=_ascii(_caption(report, most)), tooltip="who keeps these tensors alive")
    graph.attr(
        "node", fontname="Helvetica", fontsize="11", fontcolor=INK, color=SOFT, shape="box", style="filled", fillcolor=PLAIN
    )
    graph.attr("edge", fontname="Courier", fontsize="10", fontcolor=INK, color=SOFT, arrowsize="0.7")
    for number, survivor in enumerate(report.survivors[:most]):
        _add_leak(graph, survivor, f"s{number}")
    if not report.survivors:
        graph.node("nothing", "nothing outlives its step", shape="plaintext", style="")
    return str(graph.source)


def _caption(report: Report, most: int) -> str:
    rest = len(report.survivors) - most
    return summary(report) + (f" (+ {rest} more)" if rest > 0 else "")


def _add_leak(graph: Digraph, survivor: Survivor, prefix: str) -> None:
    colour = VERDICT_COLOURS[survivor.verdict]
    with graph.subgraph(name=f"cluster_{prefix}") as cluster:
        amount = f"{bytes_text(survivor.bytes)} in {plural(survivor.count, 'storage')}"
        title = f"{survivor.verdict.value} {survivor.fingerprint}: {amount}"
        cluster.attr(label=_ascii(title), color=colour, style="rounded", fontsize="12", fontcolor=colour)
        root_kind = survivor.chain.root.kind
        cyclic = root_kind in (RootKind.REFERENCE_CYCLE, RootKind.NATIVE_CYCLE)
        if not cyclic:
            cluster.node(f"{prefix}_root", _ascii(root_text(survivor.chain)), shape="ellipse", fillcolor=PAPER)
        names = [f"{prefix}_{k}" for k in range(len(survivor.chain.links))]
        for name, link in zip(names, survivor.chain.links, strict=True):
            _add_holder(cluster, name, link)
        _add_tensor(cluster, survivor, f"{prefix}_tensor")
        if not cyclic and names:
            cluster.edge(f"{prefix}_root", names[0])
        _add_references(cluster, survivor, [*names, f"{prefix}_tensor"])


def _add_holder(graph: Digraph, name: str, link: Link) -> None:
    autograd = "autograd" in link.holder_type or link.kind in {"next", "saved", "variable"}
    lines = [f"<b>{_html(link.holder)}</b>"]
    if not link.holder_type.endswith(link.holder):
        lines.append(_html(link.holder_type))
    if link.where:
        lines.append(f'<font point-size="9" color="{SOFT}">{_html(link.where)}</font>')
    style = "rounded,filled" if autograd else "filled"
    reason = f" ({link.reason})" if link.reason else ""
    tooltip = _ascii(f"{link.holder_type}: leaking {link.leaking.value}{reason}")
    graph.node(name, f"<{'<br/>'.join(lines)}>", style=style, fillcolor=NODE if autograd else PLAIN, tooltip=tooltip)


def _add_tensor(graph: Digraph, survivor: Survivor, name: str) -> None:
    tensor = survivor.tensor
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    facts = f"{shape} {tensor.dtype} {tensor.device}"
    label = f"<<b>{_html(tensor.label)}</b><br/>{_html(facts)}<br/>{_html(bytes_text(tensor.storage_bytes))}>"
    graph.node(name, label, fillcolor=TENSOR, penwidth="1.6", color=INK, tooltip=_ascii(f"{tensor.label} {facts}"))


def _add_references(graph: Digraph, survivor: Survivor, names: list[str]) -> None:
    """The references between neighbours; the cut is dashed and says what it frees, suspects are heavy."""
    suspects = suspect_links(survivor.chain)
    cycle = survivor.chain.cycle
    for index, link in enumerate(survivor.chain.links):
        label, extra = link.reference, {}
        if index == survivor.cut.link:
            verb = "frees" if survivor.cut.proof is Proof.PROVED else "would free"
            label = f"{label}\ncut: {verb} {bytes_text(survivor.cut.frees_bytes)}"
            extra = {"color": CUT, "fontcolor": CUT, "style": "dashed", "penwidth": "2.2"}
        elif index in suspects:
            extra = {"color": SUSPECT, "penwidth": "1.8"}
        graph.edge(names[index], names[index + 1], label=_ascii(f" {label} "), tooltip=_ascii(link.reference), **extra)
    if cycle is not None and survivor.chain.links:
        graph.edge(names[-1], names[cycle], label=" closes the cycle ", style="dotted", constraint="false")


def _ascii(text: str) -> str:
    """Text for a quoted DOT string: the embedded engine has no metrics for the rest, and foreign names may hold anything."""
    return "".join(c if " " <= c <= "~" or c == "\n" else "?" for c in text)[:400].replace("\\", "\\\\")


def _html(text: str) -> str:
    return escape(_ascii(text).replace("\\\\", "\\"))

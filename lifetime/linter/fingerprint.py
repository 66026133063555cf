"""Names for findings that survive edits elsewhere: no line numbers in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from lifetime.linter.model import Finding, Span
from lifetime.linter.module import Module


def fingerprinted(module: Module, findings: Iterable[Finding], name: str) -> list[Finding]:
    """The findings, each with a fingerprint of the file's `name` in the project, its code, function and text.

    Several that agree in all of these are told apart by their order.
    """
    seen: Counter[str] = Counter()
    named = []
    for finding in findings:
        text = " ".join(_text(module, finding.span).split())
        key = "\0".join((name, finding.code, finding.function or "", text))
        seen[key] += 1
        digest = sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")).hexdigest()
        named.append(replace(finding, fingerprint=digest[:16]))
    return named


def _text(module: Module, span: Span) -> str:
    lines = module.lines[span.start_line - 1 : span.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.start_column :]
    return "\n".join(lines)

"""One module through the rules: findings with fingerprints and excerpts, what was excused, and which rule crashed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from lifetime.linter import gate, loader, registry, suppress
from lifetime.linter.fingerprint import fingerprinted
from lifetime.linter.loader import Document
from lifetime.linter.model import Finding
from lifetime.linter.module import Module
from lifetime.linter.result import Problem
from lifetime.linter.rule import Rule

CONTEXT = 2
"""Lines of an excerpt above and below the finding."""
LONGEST_EXCERPT = 12


@dataclass(frozen=True)
class Place:
    """A file's path as it is shown, on disk (empty for standard input), and within its project (for fingerprints)."""

    path: str
    file: str
    name: str


@dataclass(frozen=True)
class Checked:
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    excused: int = 0
    loads: frozenset[str] = frozenset()
    """Other files that the result depends on."""


def examine(document: Document, place: Place, codes: Collection[str]) -> Checked:
    """What the rules named by `codes` say about a document, in positions of its source.

    Raises:
        SourceError: it does not parse.
    """
    tree = loader.tree(document, place.path)
    return check(Module(place.path, document.source, tree, place.file), codes, place.name)


def check(module: Module, codes: Collection[str], name: str) -> Checked:
    """What the rules say about a module. One that crashes is a problem; the others still run."""
    problems: list[Problem] = []
    hit = gate.hits(module.source.encode("utf-8", "surrogatepass"), codes, module.path)
    rules = [rule for rule in registry.load() if rule.code in codes]
    for rule in sorted(rules, key=lambda rule: rule.last):
        found = _run(rule, module) if rule.code in hit else ()
        if isinstance(found, Problem):
            problems.append(found)
        else:
            module.raw[rule.code] = found
    raw = sorted((f for found in module.raw.values() for f in found), key=lambda f: (f.span, f.code))
    kept = suppress.unexcused(module, raw)
    findings = tuple(_with_excerpt(module, f) for f in fingerprinted(module, kept, name))
    return Checked(findings, tuple(problems), len(raw) - len(kept), frozenset(module.loads))


def _run(rule: Rule, module: Module) -> tuple[Finding, ...] | Problem:
    try:
        return tuple(rule.check(module))
    except RecursionError:
        return Problem(module.path, f"rule {rule.code} gave up: the code nests too deep for it")
    except Exception as error:  # a rule's bug must not cost the user the other rules and files
        return Problem(module.path, f"rule {rule.code} crashed: {error!r}; please report it")


def _with_excerpt(module: Module, finding: Finding) -> Finding:
    first = max(1, finding.span.start_line - CONTEXT)
    last = min(finding.span.end_line + CONTEXT, first + LONGEST_EXCERPT - 1)
    return replace(finding, excerpt=tuple(module.lines[first - 1 : last]), excerpt_line=first)

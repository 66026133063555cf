"""The comment for a release, from a report's evidence: found, written out, put above the release."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lifetime.errors import LifetimeError
from lifetime.files import write_whole
from lifetime.heap.model import Report, Site, SiteVerdict, Survivor
from lifetime.linter import loader
from lifetime.linter.context import context_hash, function_named, release_of
from lifetime.linter.edits import LINE
from lifetime.linter.engine import check_source
from lifetime.linter.model import HOLDER_MARK
from lifetime.linter.module import Module
from lifetime.report.comment import Release, comment_lines, holder_line

RELEASES = ("LT001", "LT003")
"""Sites whose remedy is a release of `.grad`: the others have no comment to be written."""
LINE_LENGTH = 88
LONGEST = 120


@dataclass(frozen=True)
class Target:
    """A release in a file: the block goes above line `line` (1-based), indented by `indent`."""

    path: str
    text: loader.Text
    line: int
    indent: str


def choose(report: Report, wanted: str | None) -> tuple[Site, Survivor]:
    """The site to speak of, and its largest survivor.

    Raises:
        LifetimeError: no such site, several and none named, or nothing outlived it.
    """
    ours = [s for s in report.sites if s.code in RELEASES and s.verdict is not SiteVerdict.NOT_REACHED]
    sites = [s for s in ours if (_is(s, wanted) if wanted else s.verdict is SiteVerdict.CONFIRMED)]
    if not sites:
        known = ", ".join(f"{s.path}:{s.line} ({s.verdict.value})" for s in ours) or "none"
        missing = f"harvest of gradients at {wanted}" if wanted else "confirmed harvest of gradients"
        raise LifetimeError(f"the report has no {missing}", f"a comment belongs to a release of .grad; harvests reached: {known}")
    if len({(s.path, s.line) for s in sites}) > 1:
        raise LifetimeError("several sites are confirmed", f"name one: {' '.join(f'--site {s.path}:{s.line}' for s in sites)}")
    site = sites[0]
    holders = [s for s in report.survivors if s.fingerprint in site.survivors]
    if not holders:
        raise LifetimeError(
            f"nothing outlived {site.path}:{site.line} in that run ({site.verdict.value}): there is no holder to name"
        )
    largest = max(holders, key=lambda s: s.bytes)
    if not HOLDER_MARK.fullmatch(holder_line(largest)):
        raise LifetimeError("the report was changed by hand: the fingerprint of the holder is none", "trace it again")
    return site, largest


def describe(report: Report, site: Site, survivor: Survivor) -> Release:
    """What the comment says; later readers come from lint and from the run.

    Raises:
        LifetimeError: the file is not the one that was traced.
    """
    module = _module(site.path)
    _check_context(module, site)
    found = check_source(module.source, site.path, file=site.path, select=["LT001"])
    evidence: Mapping[str, object] = next((f.evidence for f in found if f.function == site.function), {})
    readers = [r for r in _list(evidence.get("readers")) if isinstance(r, dict)]
    doubts = [f"{r['path']}:{r['line']}" for r in readers if r.get("may_alias")]
    doubts += [f"{r.path}:{r.line} ({r.function}, seen in the run)" for r in site.readers]
    leaves = str(evidence.get("leaves") or _leaves_in_release(module, site))
    return Release(site, survivor, report.environment, leaves, len(readers) + len(site.readers), tuple(dict.fromkeys(doubts)))


def write(release: Release) -> bool:
    """Put the block above the release, in place of an older one; True when the file changed.

    Raises:
        LifetimeError: there is no release in that function.
    """
    target = find_target(release.site)
    lines = LINE.findall(target.text.source)
    ending = lines[0][len(lines[0].rstrip("\r\n")) :]
    width = line_length(target.path, lines) - len(target.indent.expandtabs())
    block = [target.indent + line + ending for line in comment_lines(release, width)]
    first = _older_block(lines, target.line - 1)
    changed = "".join([*lines[:first], *block, *lines[target.line - 1 :]])
    if changed == target.text.source:
        return False
    if ast.dump(loader.parse(changed, target.path)) != ast.dump(loader.parse(target.text.source, target.path)):
        raise LifetimeError(f"{target.path}: the comment would change the code; nothing was written", "please report this")
    write_whole(target.path, loader.Text(changed, target.text.encoding, target.text.bom).encode())
    return True


def find_target(site: Site) -> Target:
    module = _module(site.path)
    function = function_named(module, site.function or "")
    if function is None:
        raise LifetimeError(f"{site.path} has no function {site.function} any more", "trace the file as it is now")
    statement = release_of(module, function)
    if statement is None:
        raise LifetimeError(f"{site.function} in {site.path} releases nothing", "lifetime lint --fix writes the release")
    text = loader.decode(loader.read(site.path), site.path)
    line = module.lines[statement.lineno - 1]
    return Target(site.path, text, statement.lineno, line[: len(line) - len(line.lstrip())])


def line_length(path: str, lines: Sequence[str]) -> int:
    """The project's line length: what its pyproject says, else 88, else what the file itself keeps to, up to 120."""
    for folder in Path(path).resolve().parents:
        if (folder / "pyproject.toml").is_file():
            found = re.search(r"^line[-_]length\s*=\s*(\d+)", (folder / "pyproject.toml").read_text(errors="replace"), re.MULTILINE)
            if found:
                return int(found[1])
            break
    return min(max([LINE_LENGTH, *(len(line.rstrip()) for line in lines)]), LONGEST)


def _older_block(lines: Sequence[str], end: int) -> int:
    """Index of the first line of an older block that ends above line index `end`; `end` where there is none."""
    index = end
    while index > 0 and lines[index - 1].lstrip().startswith("#"):
        index -= 1
        if HOLDER_MARK.search(lines[index]):
            return index
    return end


def _module(path: str) -> Module:
    text = loader.decode(loader.read(path), path)
    return Module(path, text.source, loader.parse(text.source, path), path)


def _check_context(module: Module, site: Site) -> None:
    function = function_named(module, site.function or "")
    if function is None:
        raise LifetimeError(f"{site.path} has no function {site.function} any more", "trace the file as it is now")
    if site.context and site.context != context_hash(function):
        raise LifetimeError(f"{site.function} in {site.path} is not the code that was traced (hash mismatch)", "trace it again")


def _leaves_in_release(module: Module, site: Site) -> str:
    """What the release goes through, or the one leaf that it clears; empty where neither is written."""
    function = function_named(module, site.function or "")
    statement = release_of(module, function) if function else None
    inner = list(ast.walk(statement)) if statement else []
    loops = [node.iter for node in inner if isinstance(node, ast.For)]
    cleared = [
        t.value for n in inner if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Attribute) and t.attr == "grad"
    ]
    return next((module.text(found) for found in (*loops, *cleared)), "")


def _is(site: Site, wanted: str) -> bool:
    path, _, line = wanted.rpartition(":")
    return line == str(site.line) and os.path.realpath(path) == os.path.realpath(site.path)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []

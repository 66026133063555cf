"""A report as SARIF 2.1.0: a result a survivor, the hops of its chain as related locations.

Paths stay relative (`%SRCROOT%`), fingerprints are ours, so that a code-scanning site tells the same leak from a new one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from lifetime import __version__
from lifetime.heap.model import Report, Survivor, Verdict
from lifetime.report.clean import one_line
from lifetime.report.compare import GREW, NEW, SAME, SHRANK
from lifetime.report.view import View
from lifetime.report.words import MEANING, amount, blamed, cut_text, holder_text, reference_text, root_text
from lifetime.units import plural

MOST_RESULTS = 5000
"""What GitHub shows of one run."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Verdict.GROWING: "error", Verdict.UNTIL_GC: "warning", Verdict.LINGERING: "note"}
STATES = {NEW: "new", GREW: "updated", SHRANK: "updated", SAME: "unchanged"}
_PLACE = re.compile(r"^(?P<path>.+?):(?P<line>\d{1,9})\b")
Place = tuple[str, int]


def view_sarif(view: View) -> str:
    """The view's survivors as the results of one run."""
    driver = {"name": "lifetime", "version": __version__, "rules": [_rule(verdict) for verdict in Verdict]}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "the folder that the program was started in"}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notes(view))}],
        "results": [{**_result(view.report, survivor), **_state(view, survivor)} for survivor in view.alive[:MOST_RESULTS]],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _state(view: View, survivor: Survivor) -> dict[str, str]:
    """What became of it since the older report, where there is one."""
    mark = view.mark(survivor)
    return {"baselineState": STATES[mark.word]} if mark and mark.word in STATES else {}


def _notes(view: View) -> Iterator[dict[str, Any]]:
    """What could not be seen, and what is left out."""
    told = [f"{one_line(gap.where)}: {one_line(gap.why, 400)}" for gap in view.report.gaps[:200]]
    left = len(view.alive) - MOST_RESULTS
    told += [f"{plural(left, 'more survivor')} left out"] if left > 0 else []
    yield from ({"level": "note", "message": {"text": text}} for text in told)


def _rule(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": f"survivor-{verdict.value}",
        "shortDescription": {"text": f"a tensor outlives its step: {MEANING[verdict]}"},
        "defaultConfiguration": {"level": LEVELS[verdict]},
    }


def _result(report: Report, survivor: Survivor) -> dict[str, Any]:
    said = f"{blamed(survivor)} keeps {amount(survivor)}. Cut: {cut_text(survivor)}."
    hint = f" {one_line(survivor.hint, 600)}" if survivor.hint else ""
    return {
        "ruleId": f"survivor-{survivor.verdict.value}",
        "level": "note" if survivor.known else LEVELS[survivor.verdict],
        "message": {"text": said + hint},
        "locations": [{"physicalLocation": _physical(*_main_place(report, survivor))}],
        "relatedLocations": list(_hops(survivor)),
        "partialFingerprints": {"lifetimeLeak/v1": one_line(survivor.fingerprint, 64)},
        **_allocation(survivor),
    }


def _allocation(survivor: Survivor) -> dict[str, Any]:
    """The stack that a memory snapshot gave, where one was joined."""
    frames = [{"location": _located({"message": {"text": one_line(call)}}, _place(call))} for call in survivor.tensor.stack[:200]]
    return {"stacks": [{"message": {"text": "allocated by"}, "frames": frames}]} if frames else {}


def _main_place(report: Report, survivor: Survivor) -> Place:
    """The blamed holder's place, else a site's, the nearest holder's above, the tensor's, the root's, the program's."""
    links, cut = survivor.chain.links, survivor.cut.link
    site = next((s for s in report.sites if survivor.fingerprint in s.survivors), None)
    above = [link.where for link in links[: cut + 1]]
    candidates = [_place(where) for where in (*reversed(above[-1:]), *reversed(above[:-1]))]
    spare = [_place(survivor.tensor.created_at), _place(survivor.chain.root.where)]
    if site:
        candidates.insert(1, (site.path, max(site.line, 1)))
    found = [place for place in (*candidates, *spare) if place]
    return found[0] if found else (report.environment.command[0] if report.environment.command else "unknown", 1)


def _hops(survivor: Survivor) -> Iterator[dict[str, Any]]:
    chain = survivor.chain
    yield _related(0, f"root: {root_text(chain)}", _place(chain.root.where))
    for number, link in enumerate(chain.links[:200], 1):
        cut = " (cut here)" if number - 1 == survivor.cut.link else ""
        yield _related(number, f"{holder_text(link)} {reference_text(link)}{cut}", _place(link.where))
    tensor = survivor.tensor
    yield _related(len(chain.links[:200]) + 1, f"tensor: {one_line(tensor.label)}", _place(tensor.created_at))


def _related(number: int, text: str, place: Place | None) -> dict[str, Any]:
    return _located({"id": number, "message": {"text": text}}, place)


def _located(location: dict[str, Any], place: Place | None) -> dict[str, Any]:
    return {**location, "physicalLocation": _physical(*place)} if place else location


def _place(where: str | None) -> Place | None:
    found = _PLACE.match(where or "")
    return (found["path"], max(int(found["line"]), 1)) if found else None


def _physical(path: str, line: int) -> dict[str, Any]:
    clean = quote(one_line(path.replace("\\", "/"), 1000))
    absolute = path.startswith("/") or re.match(r"[A-Za-z]:[\\/]", path)
    artifact = {"uri": f"file:///{clean.lstrip('/')}"} if absolute else {"uri": clean, "uriBaseId": "%SRCROOT%"}
    return {"artifactLocation": artifact, "region": {"startLine": line}}

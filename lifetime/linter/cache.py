"""Results kept by content: safe to delete, and to share between checkouts and machines.

An entry is named by a hash of everything the result depends on: this tool's own source, the Python version, the rules, the
file's name and its bytes. What the file imports is known only afterwards, so an entry lists those files with their hashes and
is void when one differs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.util import find_spec

from lifetime.errors import LifetimeError
from lifetime.linter.check import Checked, Place
from lifetime.linter.model import Edit, Finding, Fix, Safety, Severity, Span
from lifetime.linter.regular import opened

FOLDER = ".lifetime_cache"
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of torch-lifetime: safe to delete.\n"


def key(data: bytes, place: Place, codes: Collection[str]) -> str:
    parts = (stamp(), place.name, place.path, ",".join(sorted(codes)))
    digest = sha256("\0".join(parts).encode("utf-8", "backslashreplace"))
    digest.update(b"\0" + data)
    return digest.hexdigest()


@cache
def stamp() -> str:
    """A hash of this tool: its source and the Python that parses with it."""
    digest = sha256(repr(sys.version_info[:2]).encode())
    for package in ("lifetime.linter", "lifetime.rules"):
        spec = find_spec(package)
        for top in spec.submodule_search_locations or [] if spec else []:
            for folder, folders, names in os.walk(top):
                folders.sort()
                for name in sorted(n for n in names if n.endswith(".py")):
                    digest.update(_content(os.path.join(folder, name)).encode())
    return digest.hexdigest()


def load(folder: str, key: str, place: Place) -> Checked | None:
    """The result under `key`; None when there is none, or when it cannot be used."""
    try:
        with open(_entry(folder, key), encoding="utf-8", opener=opened) as file:
            entry = json.load(file)
        here = os.path.dirname(place.file)
        if any(_content(os.path.join(here, name)) != digest for name, digest in entry["loads"].items()):
            return None
        return Checked(tuple(_finding(row) for row in entry["findings"]), (), entry["excused"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError):
        return None


def store(folder: str, key: str, place: Place, checked: Checked) -> None:
    """Keeps a result. Where the folder cannot be written there is no cache: not worth failing for."""
    from lifetime.files import write_whole

    here = os.path.dirname(place.file)
    loads = {os.path.relpath(file, here).replace(os.sep, "/"): _content(file) for file in sorted(checked.loads)}
    rows = [asdict(finding) for finding in checked.findings]
    try:
        prepare(folder)
        write_whole(_entry(folder, key), json.dumps({"loads": loads, "findings": rows, "excused": checked.excused}))
    except (OSError, LifetimeError):
        return


def prepare(folder: str) -> None:
    """Makes the folder, marked for backup programs and git. Raises OSError when it cannot."""
    os.makedirs(os.path.join(folder, stamp()[:12]), exist_ok=True)
    if not os.path.exists(os.path.join(folder, "CACHEDIR.TAG")):
        for name, text in (("CACHEDIR.TAG", TAG), (".gitignore", "*\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)


def _entry(folder: str, key: str) -> str:
    return os.path.join(folder, stamp()[:12], f"{key[:40]}.json")


@cache
def _content(file: str) -> str:
    """A hash of what is in `file`; empty when it is not there."""
    try:
        with open(file, "rb", opener=opened) as handle:
            return sha256(handle.read()).hexdigest()
    except OSError:
        return ""


def _finding(row: dict[str, object]) -> Finding:
    fields = dict(row)
    fields["severity"] = Severity(row["severity"])
    fields["span"] = _span(row["span"])
    fields["fix"] = _fix(row["fix"]) if row["fix"] else None
    fields["excerpt"] = tuple(row["excerpt"])  # type: ignore[arg-type]
    return Finding(**fields)  # type: ignore[arg-type]


def _fix(row: object) -> Fix:
    assert isinstance(row, dict)
    edits = tuple(Edit(_span(edit["span"]), edit["text"]) for edit in row["edits"])
    return Fix(row["title"], Safety(row["safety"]), edits, row["reason"])


def _span(row: object) -> Span:
    assert isinstance(row, dict)
    return Span(**row)

"""Path patterns with git's meaning: anchoring, `**`, folders only, negation, the last match wins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

CLASSES = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
TOKEN = re.compile(r"(?s)\*+|\?|\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\\.|.")


class Pattern(NamedTuple):
    regex: str
    negated: bool
    folder_only: bool


class Patterns:
    """The patterns of one ignore file or of one option, in order."""

    def __init__(self, all: tuple[Pattern, ...]) -> None:
        self.all = all

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{p.regex})" for p in self.all))

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True: ignored; False: spared by a negation; None: not mentioned. `path` is relative to the patterns' folder, POSIX."""
        if not self.all or not self._any.fullmatch(path):
            return None
        for pattern in reversed(self.all):
            if (is_folder or not pattern.folder_only) and re.fullmatch(pattern.regex, path):
                return not pattern.negated
        return None

    def covers(self, path: str, is_folder: bool = False) -> bool:
        """Whether `path` or one of the folders above it (within the patterns' folder) is ignored."""
        parts = path.split("/")
        above = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return any(self.verdict(folder, True) for folder in above) or bool(self.verdict(path, is_folder))


def patterns(lines: Iterable[str]) -> Patterns:
    """Compiled from the lines of a .gitignore; a line that git would not understand matches nothing."""
    return Patterns(tuple(p for line in lines if (p := _pattern(line))))


def _pattern(line: str) -> Pattern | None:
    text = re.sub(r"(?<!\\)[ \t]+$", "", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folder_only = text.endswith("/")
    text = text.rstrip("/") if folder_only else text
    anchored = "/" in text
    regex = _regex(re.sub(r"\*{3,}", "**", text.removeprefix("/")))
    if {"[", "\\"} & set(TOKEN.findall(text)):  # an open class or a trailing backslash
        return None
    try:
        re.compile(regex)
    except re.error:
        return None
    return Pattern(regex if anchored else f"(?:.*/)?{regex}", negated, folder_only) if text else None


def _regex(glob: str) -> str:
    head = tail = ""
    if glob.startswith("**/"):
        head, glob = "(?:.*/)?", glob[3:]
    if glob.endswith("/**"):
        tail, glob = "/.+", glob[:-3]
    middles = glob.split("/**/")
    return head + "/(?:.*/)?".join("".join(_token(t) for t in TOKEN.findall(part)) for part in middles) + tail


def _token(token: str) -> str:
    if token[0] == "*":
        return "[^/]*"
    if token == "?":
        return "[^/]"
    if token[0] == "\\":
        return re.escape(token[1:])
    if token[0] == "[" and len(token) > 1:
        negated = token[1] in "!^"
        body = re.sub(r"\[:(\w+):\]", lambda m: CLASSES.get(m[1], ""), token[1 + negated : -1])
        body = body.replace("[", r"\[").replace("\\\\[", r"\[")
        return f"(?!/)[{'^' if negated else ''}{_closing(body)}]"
    return re.escape(token)


def _closing(body: str) -> str:
    """A `]` right at the start of a class is a member of it."""
    return "\\" + body if body.startswith("]") else body

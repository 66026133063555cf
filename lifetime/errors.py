"""The errors a user can meet: a message and what to do next. Caught once, in `lifetime.cli.main`, as exit code 2."""

from __future__ import annotations


class LifetimeError(Exception):
    """Something could not be done. `help` says what to do next; it may be empty."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class UsageError(LifetimeError):
    """The command line or the configuration asks for something that does not exist."""


class SourceError(LifetimeError):
    """A source file could not be read or parsed. `line` is 1-based, 0 when no line is to blame."""

    def __init__(self, message: str, path: str, line: int = 0, help: str = "") -> None:
        super().__init__(message, help)
        self.path = path
        self.line = line


class RuleError(LifetimeError):
    """A rule could not be loaded or crashed. `code` names it."""

    def __init__(self, message: str, code: str, help: str = "") -> None:
        super().__init__(message, help)
        self.code = code


class CaptureError(LifetimeError):
    """The heap could not be looked at."""


class ReportError(LifetimeError):
    """A report could not be read, does not follow its schema, or could not be written."""

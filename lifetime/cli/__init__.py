"""The `lifetime` command: one module a subcommand, imported only when it is asked for."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from lifetime import __version__
from lifetime.errors import LifetimeError, SourceError

COMMANDS = {
    "lint": "find code that leaves gradients and graphs behind",
    "explain": "show a rule's page, or the list of rules",
    "trace": "run a program and name who holds every tensor that outlives its step",
    "render": "draw a report again, or what changed between two",
    "comment": "write the code comment for a release from a report",
    "verify": "measure a program with and without the fix",
    "doctor": "say what can be seen on this machine",
}
"""Each name is a module `lifetime.cli.NAME` with `run(argv) -> exit code`."""
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Standard output is a file on a full file system."""


def usage() -> str:
    lines = ["usage: lifetime COMMAND [OPTIONS] ...", "", "Who keeps this tensor alive, and may I let go of it?", ""]
    lines += [f"  {name:<9}{text}" for name, text in COMMANDS.items()]
    return "\n".join([*lines, "", "`lifetime COMMAND --help` shows a command's options; `lifetime --version` the version."])


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 clean, 1 findings or survivors, 2 could not do it (a traced program's own code passes through)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else "--help"
    if name in {"-h", "--help"}:
        print(usage())
        return 0 if arguments else 2
    if name in {"-V", "--version"}:
        print(f"lifetime {__version__}")
        return 0
    if name not in COMMANDS:
        return _refuse(LifetimeError(f"no command {name!r}", f"commands: {', '.join(COMMANDS)}"))
    return _run(name, arguments[1:])


def _run(name: str, arguments: Sequence[str]) -> int:
    try:
        code: int = import_module(f"lifetime.cli.{name}").run(arguments)
        with suppress(ValueError, AttributeError):  # a traced program may have closed it, or left none
            sys.stdout.flush()
        return code
    except LifetimeError as error:
        return _refuse(error)
    except BrokenPipeError:
        _let_go_of_stdout()  # the reader went away (`| head`): not an error of ours
        return 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        _let_go_of_stdout()
        return _refuse(LifetimeError(f"the output could not be written: {error.strerror}"))
    except KeyboardInterrupt:
        return 130


def _let_go_of_stdout() -> None:
    """Keep the interpreter from flushing into it again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(error: LifetimeError) -> int:
    help = f"\n  help: {error.help}" if error.help else ""
    where = f"{error.path}: " if isinstance(error, SourceError) and error.path not in error.message else ""
    with suppress(OSError, ValueError, AttributeError):  # a traced program may have closed it, or left none
        sys.stderr.write(f"lifetime: {where}{error.message}{help}\n")
    return 2

"""All of `koordpolicy COMMAND ...` but the process state it (`start.py`)."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from koordpolicy import __version__
from koordpolicy.cli.command import CANNOT_RUN, CannotRunError, Command
from koordpolicy.cli.terminal import CannotWriteError, Terminal

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from koordpolicy.graph import Compiler

NAMES = (
    "check",
    "test",
    "fmt",
    "explain",
    "graph",
    "diff",
    "snapshot",
    "rollout",
    "simulate",
    "demo",
    "manager",
    "scheduler",
    "sync",
    "schema",
)
"""All commands, in the order of `--help`: each is the `COMMAND` of the module of its name."""


def command_of(name: str) -> Command:
    """A command, imported when it is asked for: `check` in a hook needs no client of the API server."""
    command: Command = import_module(f"koordpolicy.cli.{name}").COMMAND
    return command


def parser(names: Sequence[str] = NAMES) -> argparse.ArgumentParser:
    """The parser of the whole command line, which the manual is made from as well, or of some commands."""
    whole = _Parser(
        prog="koordpolicy", description="Kubernetes co-location as policies in Git.", allow_abbrev=False
    )
    whole.add_argument("--version", action="version", version=f"koordpolicy {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in map(command_of, names):
        one = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=command.epilog,
            allow_abbrev=False,
        )
        command.add(one)
        one.set_defaults(run=command.run, whole=parser)
    return whole


def main(
    arguments: Sequence[str] | None = None,
    terminal: Terminal | None = None,
    compiler: "Compiler | None" = None,
    ready: Callable[[], None] | None = None,
) -> int:
    """Run a command and give its exit code: 0 well, 1 findings, 2 could not run, or as the command says.

    A `compiler` that is handed in keeps what it has compiled for the next call. `ready` is called before the command
    begins its work.
    """
    terminal = terminal or Terminal()
    words = sys.argv[1:] if arguments is None else arguments
    command = ""
    try:
        try:
            given = parser(_needed(words)).parse_args(words)
            command = f" {given.command}"
            given.compiler = compiler or _compiler(getattr(given, "max_cost_per_decision", None))
            if ready is not None:
                ready()
            return int(given.run(given, terminal))
        finally:
            terminal.flush()
    except CannotRunError as error:
        terminal.say(f"koordpolicy{command}: {error}")
    except CannotWriteError as error:
        terminal.say(f"koordpolicy{command}: the output cannot be written: {error}")
    except BrokenPipeError:
        pass  # the reader has seen enough (`| head`)
    except OSError as error:
        place = f"`{error.filename}`: " if isinstance(error.filename, str) else ""
        terminal.say(f"koordpolicy{command}: {place}{error.strerror or error}")
    return CANNOT_RUN


class _Parser(argparse.ArgumentParser):
    """Help that cannot be written is no success."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if message and file is sys.stdout:
            Terminal().print(message)
        else:
            super()._print_message(message, file)


def _needed(words: Sequence[str]) -> Sequence[str]:
    """The commands to import for reading these words."""
    first = words[0] if words else ""
    if first == "--version":
        return ()
    return (first,) if first in NAMES else NAMES


def _compiler(max_cost: int | None) -> "Compiler":
    """What compiles for a command; imported only when the words make sense, and under `seldom`."""
    from koordpolicy.graph import Compiler  # noqa: PLC0415  # see above
    from koordpolicy.runtime.policies.packs import find_pack  # noqa: PLC0415

    return Compiler(find_pack) if max_cost is None else Compiler(find_pack, max_cost)

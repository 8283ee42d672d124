"""The entry point: `koordpolicy COMMAND ...`."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from koordpolicy import __version__
from koordpolicy.cli.command import CANNOT_RUN, CannotRunError, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.collector import seldom

if TYPE_CHECKING:
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
    whole = argparse.ArgumentParser(
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
) -> int:
    """Run a command and give its exit code: 0 well, 1 findings, 2 could not run, or as the command says.

    A `compiler` that is handed in keeps what it has compiled for the next call.
    """
    terminal = terminal or Terminal()
    words = sys.argv[1:] if arguments is None else arguments
    given = parser(_needed(words)).parse_args(words)
    given.compiler = compiler or _compiler()
    try:
        return int(given.run(given, terminal))
    except CannotRunError as error:
        terminal.say(f"koordpolicy {given.command}: {error}")
        return CANNOT_RUN
    except BrokenPipeError:
        # The reader has seen enough (`| head`); Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT_RUN
    except KeyboardInterrupt:
        terminal.say("")
        return 130


def process() -> int:
    """The process `koordpolicy`: `main` with the words it was started with."""
    with seldom():
        return main()


def _needed(words: Sequence[str]) -> Sequence[str]:
    """The commands to import for reading these words."""
    first = words[0] if words else ""
    if first == "--version":
        return ()
    return (first,) if first in NAMES else NAMES


def _compiler() -> "Compiler":
    """What compiles for a command; imported only when the words make sense, and under `seldom`."""
    from koordpolicy.graph import Compiler  # noqa: PLC0415  # see above
    from koordpolicy.runtime.packs import find_pack  # noqa: PLC0415

    return Compiler(find_pack)


if __name__ == "__main__":
    sys.exit(process())

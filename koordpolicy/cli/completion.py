"""`koordpolicy completion`: what a shell needs to complete commands, flags, their values and paths."""

import argparse

from koordpolicy.cli.command import OK
from koordpolicy.cli.terminal import Terminal
from koordpolicy.language.command_line.arguments import arguments_of, subparsers

_PATHS = frozenset({"PATH", "FILE"})
_DIRECTORIES = frozenset({"DIR"})


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Print the script of a shell."""
    import shtab  # noqa: PLC0415  # nobody else needs it

    whole: argparse.ArgumentParser = arguments.whole()
    _mark_paths(whole, shtab.FILE, shtab.DIRECTORY)
    terminal.print(shtab.complete(whole, arguments.shell))
    return OK


def _mark_paths(parser: argparse.ArgumentParser, file: object, directory: object) -> None:
    """Say which values are paths, by the names that help shows for them."""
    for action in arguments_of(parser):
        if action.metavar in _PATHS:
            action.complete = file  # type: ignore[attr-defined]  # shtab looks for it there
        elif action.metavar in _DIRECTORIES:
            action.complete = directory  # type: ignore[attr-defined]
    for inner in subparsers(parser).values():
        _mark_paths(inner, file, directory)

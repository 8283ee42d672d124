"""`koordpolicy completion`: what a shell needs to complete commands, flags, their values and paths."""

import argparse

from koordpolicy.cli.command import OK, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.language.manual.arguments import arguments_of, subparsers

SHELLS = ("bash", "zsh", "fish")
_PATHS = frozenset({"PATH", "FILE"})
_DIRECTORIES = frozenset({"DIR"})


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
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


COMMAND = Command(
    _add,
    _run,
    epilog="bash: source <(koordpolicy completion bash); zsh: koordpolicy completion zsh > a folder of $fpath/_koordpolicy; "
    "fish: koordpolicy completion fish > ~/.config/fish/completions/koordpolicy.fish",
)

"""The flags of `koordpolicy completion`."""

import argparse

from koordpolicy.cli.command import Usage

SHELLS = ("bash", "zsh", "fish")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")


USAGE = Usage(
    _add,
    "bash: source <(koordpolicy completion bash); zsh: koordpolicy completion zsh > a folder of $fpath/_koordpolicy; "
    "fish: koordpolicy completion fish > ~/.config/fish/completions/koordpolicy.fish",
)

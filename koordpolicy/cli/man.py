"""`koordpolicy man`: the manual page of the command line, made from its parser."""

import argparse

from koordpolicy import __version__
from koordpolicy.cli.command import OK
from koordpolicy.cli.terminal import Terminal
from koordpolicy.language.command_line.manpage import manpage


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Print the page."""
    terminal.print(manpage(arguments.whole(), __version__))
    return OK

"""`koordpolicy man`: the manual page of the command line, made from its parser."""

import argparse

from koordpolicy import __version__
from koordpolicy.cli.command import OK, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.language.manual.manpage import manpage


def _add(parser: argparse.ArgumentParser) -> None:
    del parser  # it takes no arguments


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    terminal.print(manpage(arguments.whole(), __version__))
    return OK


COMMAND = Command(_add, _run, epilog="koordpolicy man > /usr/local/share/man/man1/koordpolicy.1")

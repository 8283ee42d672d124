"""The flags of `koordpolicy man`."""

import argparse

from koordpolicy.cli.command import Usage


def _add(parser: argparse.ArgumentParser) -> None:
    del parser  # it takes no arguments


USAGE = Usage(_add, "koordpolicy man > /usr/local/share/man/man1/koordpolicy.1")

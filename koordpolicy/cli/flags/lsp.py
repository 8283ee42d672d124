"""The flags of `koordpolicy lsp`."""

import argparse

from koordpolicy.cli.command import Usage


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="speak over standard input and output, as always: editors may say it",
    )
    parser.add_argument(
        "--log-file", metavar="FILE", help="where to write what goes wrong (default: standard error)"
    )


USAGE = Usage(_add, "The manual's page on editors shows how to set them up.")

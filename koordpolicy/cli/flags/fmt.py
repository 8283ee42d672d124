"""The flags of `koordpolicy fmt`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.paths import add_paths
from koordpolicy.cli.flags.stdin import add_stdin_filename


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_stdin_filename(parser)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; name the files that would change"
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="format of what is said of the files; json for programs, with the findings of files that cannot be read",
    )


USAGE = Usage(_add, "exit code: 0 well, 1 files that cannot be read, or that would change, 2 could not run")

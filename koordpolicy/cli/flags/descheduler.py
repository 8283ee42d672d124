"""The flags of `koordpolicy descheduler`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags


def _add(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_process_flags(parser)
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default="",
        help="go by this profile of Descheduling alone (default: by all there are)",
    )
    parser.add_argument("--dry-run", action="store_true", help="let no pod go, and say which would")
    parser.add_argument(
        "--once",
        action="store_true",
        help="do one round of each profile, print what it found, and end; nodes that are too full count as having been so for long"
        " enough",
    )
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how --once prints (text)")


USAGE = Usage(_add, EPILOG)

"""The flags of `koordpolicy rollout`."""

import argparse
import getpass
import os
from collections.abc import Mapping

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags

_WORDS: Mapping[str, str] = {
    "status": "where rollouts stand; of one revision with its history",
    "pause": "stay in the present step",
    "resume": "go on after a pause",
    "abort": "return to the old revision, everywhere and for good",
    "plan": "what the policies below a path say of how the next revision goes live",
}


def _add(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, meaning in _WORDS.items():
        one = commands.add_parser(name, help=meaning, description=meaning[0].upper() + meaning[1:] + ".")
        one.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format")
        if name == "plan":
            one.add_argument(
                "paths", metavar="PATH", nargs="*", default=["."], help="files and directories (default: .)"
            )
            continue
        one.add_argument(
            "revision",
            metavar="REVISION",
            nargs="?",
            help="the beginning of its commit or digest, or its PolicyRevision's name"
            + ("" if name == "status" else " (default: the one that goes on)"),
        )
        place = one.add_mutually_exclusive_group()
        add_cluster_flags(one, place)
        place.add_argument(
            "--state-dir", metavar="DIR", help="the state directory of a process without a cluster"
        )
        if name != "status":
            one.add_argument(
                "--by", metavar="NAME", default=this_user(), help="who asks for it (default: you)"
            )


def this_user() -> str:
    """Who sits here, as the history shows it."""
    try:
        return f"{getpass.getuser()}@{os.uname().nodename}"
    except (OSError, KeyError):
        return os.uname().nodename


USAGE = Usage(_add, "exit code: 0 well, 1 the named rollout was aborted, 2 could not run", compiles=True)

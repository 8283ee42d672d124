"""The flags of `koordpolicy sync`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import LOG_FORMATS
from koordpolicy.cli.flags.repository import add_repository_flags
from koordpolicy.cli.flags.serving import add_serving_flags

_EPILOG = (
    "exit code: 0 synced (with --once) or stopped when told to, 1 the commit's signature was refused, "
    "2 could not sync or start"
)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repo", metavar="URL", required=True, help="address of the repository: HTTPS, SSH, or a path"
    )
    parser.add_argument(
        "--dir",
        metavar="DIR",
        type=Path,
        required=True,
        help="directory that is kept in step, and nothing else's; a --link with a path may lie outside of it",
    )
    parser.add_argument(
        "--link",
        metavar="NAME",
        default="",
        help="link to the present tree, for readers (default: the last element of the address, without `.git`)",
    )
    parser.add_argument("--once", action="store_true", help="sync once and end")
    parser.add_argument(
        "--max-failures",
        metavar="N",
        type=int,
        help="end after more failures in a row; -1 goes on for ever (default: -1, with --once 0)",
    )
    add_repository_flags(parser)
    add_serving_flags(parser.add_argument_group("serving"), "off", delegates=False)
    service = parser.add_argument_group("observing")
    service.add_argument(
        "--webhook",
        action="store_true",
        help="sync at once on POST /webhook; without a secret for callers with credentials, or on a loopback address",
    )
    service.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        type=Path,
        help="secret that messages to the webhook must prove to know, as those of GitHub, GitLab, Gitea and Forgejo",
    )
    service.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="of the log (text)")
    service.add_argument("--verbose", action="store_true", help="log more")


USAGE = Usage(_add, _EPILOG)

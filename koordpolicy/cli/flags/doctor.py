"""The flags of `koordpolicy doctor`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags


def _add(parser: argparse.ArgumentParser) -> None:
    add_cluster_flags(parser)
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        default="koordpolicy-system",
        help="where koordpolicy's processes run (default: koordpolicy-system)",
    )
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="write all that somebody who helps would ask for into a .tar.gz: findings, status, policies, a snapshot; no Secrets, no logs",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format")


USAGE = Usage(
    _add,
    "Changes nothing: one policy that must be refused is tried as a dry run. What a node's kernel can do is told by `koordpolicy agent --doctor` there. "
    "Exit code: 0 well, 1 something failed, 2 could not run, or you may read so little that nothing can be said.",
)

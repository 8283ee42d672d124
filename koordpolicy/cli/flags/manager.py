"""The flags of `koordpolicy manager`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags
from koordpolicy.cli.flags.webhooks import add_webhook_flags


def _add(parser: argparse.ArgumentParser) -> None:
    add_process_flags(parser)
    parser.add_argument(
        "--resync",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="look at each node so often (default: 60)",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=4, help="nodes written at a time (default: 4)"
    )
    parser.add_argument(
        "--follow-slo-config",
        metavar="NAMESPACE",
        nargs="?",
        default="",
        const="koordinator-system",
        help="follow the ConfigMap slo-controller-config of a Koordinator in this namespace (koordinator-system), live: what it"
        " says lies above the policies, here and in what is published for agents; it is to be readable, see"
        " deploy/follow-slo-config",
    )
    add_webhook_flags(parser.add_argument_group("webhooks"))


USAGE = Usage(_add, EPILOG)

"""The flags of `koordpolicy yarn-operator`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags


def _add(parser: argparse.ArgumentParser) -> None:
    add_process_flags(parser, traces=False)
    yarn = parser.add_argument_group("YARN")
    yarn.add_argument(
        "--yarn-url",
        metavar="URL",
        action="append",
        default=[],
        help="its ResourceManager, such as http://rm-0:8088; once for each where one stands by for another",
    )
    yarn.add_argument(
        "--yarn-user",
        metavar="NAME",
        default="",
        help="the user of simple authentication, one of yarn.admin.acl",
    )
    yarn.add_argument(
        "--yarn-token-file",
        metavar="FILE",
        type=Path,
        help="a bearer token for it, read anew for each request",
    )
    yarn.add_argument(
        "--yarn-ca-file",
        metavar="FILE",
        type=Path,
        help="the authorities, as PEM, that its certificate is checked by (default: the system's)",
    )


USAGE = Usage(_add, EPILOG)

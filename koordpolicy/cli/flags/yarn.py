"""The flags that say where YARN's ResourceManager is, and as whom it is asked."""

from pathlib import Path

from koordpolicy.cli.flags.repository import Flags


def add_yarn_flags(parser: Flags) -> None:
    """Declare them."""
    parser.add_argument(
        "--yarn-url",
        metavar="URL",
        action="append",
        default=[],
        help="share batch resources of nodes with the YARN of this ResourceManager, such as http://rm-0:8088, as YARNNode policies"
        " say; once for each where one stands by for another",
    )
    parser.add_argument(
        "--yarn-user",
        metavar="NAME",
        default="",
        help="the user of simple authentication, one of yarn.admin.acl",
    )
    parser.add_argument(
        "--yarn-token-file",
        metavar="FILE",
        type=Path,
        help="a bearer token for it, read anew for each request",
    )
    parser.add_argument(
        "--yarn-ca-file",
        metavar="FILE",
        type=Path,
        help="the authorities, as PEM, that its certificate is checked by (default: the system's)",
    )

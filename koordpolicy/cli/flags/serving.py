"""The flags that say where a process serves, and who may ask it there."""

from pathlib import Path

from koordpolicy.cli.flags.repository import Flags
from koordpolicy.cli.flags.tls import add_tls_flags

HTTP = "--http"


def add_serving_flags(parser: Flags, default: str, *, delegates: bool = True, unless: str = "") -> None:
    """Declare them; `delegates` says whether there is a cluster that can be asked about callers, `unless` what may change the default."""
    parser.add_argument(
        HTTP,
        metavar="[HOST]:PORT",
        default=default,
        help="serve /healthz, /readyz, /metrics and /statusz there, and at / who may read what; port 0 takes a free one,"
        f" no host every address, `off` none ({unless}{default})",
    )
    add_tls_flags(
        parser,
        certificate="serve by TLS with this certificate; read again when it changes, as the next two are",
        clients="let in callers whose certificate this CA has signed; /healthz and /readyz answer everyone",
    )
    parser.add_argument(
        "--tls-client-names",
        metavar="NAMES",
        default="",
        help="of those certificates, only the ones with these common names, separated by commas (default: all)",
    )
    parser.add_argument(
        "--bearer-token-file",
        metavar="FILE",
        type=Path,
        help="let in callers who send this token (Authorization: Bearer); read at each request",
    )
    if delegates:
        parser.add_argument(
            "--delegated-auth",
            action="store_true",
            help="let in callers with a token that the API server knows (TokenReview), and ask it of them and of"
            " certificates' users whether they may do that to the path (SubjectAccessReview)",
        )
    parser.add_argument(
        f"{HTTP}-anonymous-auth",
        action="store_true",
        help="let everyone who reaches --http read /metrics and /statusz; on a loopback address without credentials"
        " everyone may",
    )

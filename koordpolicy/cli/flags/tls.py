"""The flags that say by which certificate something is served, and whose certificates it takes."""

from pathlib import Path

from koordpolicy.cli.flags.repository import Flags

CERTIFICATE = "--tls-cert-file"
KEY = "--tls-private-key-file"
CLIENTS = "--tls-client-ca-file"


def add_tls_flags(parser: Flags, *, certificate: str, clients: str) -> None:
    """Declare them, with what the certificate is for and what becomes of clients' ones."""
    parser.add_argument(CERTIFICATE, metavar="FILE", type=Path, help=certificate)
    parser.add_argument(KEY, metavar="FILE", type=Path, help="the certificate's key")
    parser.add_argument(CLIENTS, metavar="FILE", type=Path, help=clients)

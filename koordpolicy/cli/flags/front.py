"""The flags of `koordpolicy front`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import LOG_FORMATS
from koordpolicy.cli.flags.tls import add_tls_flags

_EPILOG = "exit code: 0 stopped when told to, 2 could not start"


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="[HOST]:PORT",
        default=":9876",
        help="serve there by TLS (:9876)",
    )
    parser.add_argument(
        "--server",
        metavar="PATH",
        type=Path,
        required=True,
        help="the Unix socket of the manager, as its `--webhook unix:PATH` says",
    )
    add_tls_flags(
        parser,
        certificate="serve with this certificate (default: serving.pem beside the socket, where a manager puts its own)",
        clients="tell the manager of client certificates that this CA has signed; it asks for one with --webhook-client-ca-file",
    )
    parser.add_argument(
        "--peers",
        metavar="HOST:PORT",
        default="",
        help="the fronts of other replicas, which are asked what the manager does not answer: a name that stands for all of"
        " them, such as a headless Service's (default: wait for the manager)",
    )
    parser.add_argument(
        "--peer-name",
        metavar="NAME",
        default="koordpolicy-manager-webhook.koordpolicy-system.svc",
        help="the name in their certificates (koordpolicy-manager-webhook.koordpolicy-system.svc)",
    )
    parser.add_argument(
        "--peer-ca-file",
        metavar="FILE",
        type=Path,
        help="the CA that has signed them (default: authority.pem beside the socket)",
    )
    parser.add_argument(
        "--drain",
        metavar="DURATION",
        default="5s",
        help="go on answering so long once told to stop (5s)",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST]:PORT",
        default="",
        help="serve /healthz and /metrics there, in clear text and to whoever asks: they hold counts alone (default: nowhere)",
    )
    parser.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="of the log (text)")
    parser.add_argument("--verbose", action="store_true", help="log more")


USAGE = Usage(_add, _EPILOG)

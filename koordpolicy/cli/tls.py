"""The flags of `add_tls_flags`, read: without the servers that they are for, of which a front needs none."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.tls import CERTIFICATE, KEY


def certificate_pair(arguments: argparse.Namespace) -> tuple[Path, Path] | None:
    """The certificate and key of the flags, None for none. Raises `CannotRunError` for one without the other."""
    certificate, key = arguments.tls_cert_file, arguments.tls_private_key_file
    if (certificate is None) != (key is None):
        raise CannotRunError(f"{CERTIFICATE} and {KEY} belong together")
    return None if certificate is None else (certificate, key)

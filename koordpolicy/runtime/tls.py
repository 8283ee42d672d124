"""How a server shakes hands: certificate, key and the CA of its clients as PEM files, read again when they change."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key as PEM files. `clients` is the CA by whose certificates clients may prove who they are.

    All are read again when they change. A client may leave its certificate out; what it is then let do, its route says.
    """

    certificate: Path
    key: Path
    clients: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that it takes."""
        clients = () if self.clients is None else (self.clients,)
        return (self.certificate, self.key, *clients)


def context_of(tls: Tls) -> ssl.SSLContext:
    """How to shake hands. Raises OSError that names the file, and `ssl.SSLError`."""
    for path in tls.files:
        with path.open("rb"):
            pass  # the ssl module does not say which file it could not read
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key)
    if tls.clients is not None:
        context.load_verify_locations(tls.clients)
        # Those who only ask whether we are well, as kubelet does, have none.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def stamp_of(tls: Tls) -> tuple[Any, ...]:
    """What changes when the files do, through links as well."""
    stamp: list[Any] = []
    for path in tls.files:
        try:
            stat = path.stat()
            stamp.append((stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamp.append(None)
    return tuple(stamp)

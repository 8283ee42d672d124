"""The certificate of a server, read again when its files change."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

LOG: Final = logging.getLogger(__name__)


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


class Certificates:
    """What new connections are to be shaken hands with, kept up to date while its `async with` block runs.

    Raises OSError that names the file which cannot be read, and `ssl.SSLError`.
    """

    def __init__(self, tls: Tls, seconds: float) -> None:
        self._tls = tls
        self._seconds = seconds
        self.context = context_of(tls)
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._following = asyncio.create_task(self._follow(), name="certificate")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _follow(self) -> None:
        """Take renewed files for new connections; a half-written pair waits for the next look."""
        seen = _stamp(self._tls)
        while True:
            await asyncio.sleep(self._seconds)
            now = _stamp(self._tls)
            if now == seen:
                continue
            try:
                # A context of its own: a CA that was taken away must not count any more.
                self.context = context_of(self._tls)
            except (OSError, ssl.SSLError) as error:
                LOG.warning("the renewed certificate is of no use yet: %s", error)
                continue
            seen = now
            LOG.info("the certificate was renewed")


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


def _stamp(tls: Tls) -> tuple[Any, ...]:
    """What changes when the files do, through links as well."""
    stamp: list[Any] = []
    for path in tls.files:
        try:
            stat = path.stat()
            stamp.append((stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamp.append(None)
    return tuple(stamp)

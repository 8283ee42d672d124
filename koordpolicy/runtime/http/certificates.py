"""The certificate of a server, read again when its files change."""

import asyncio
import logging
import ssl
from typing import Final, Self

from koordpolicy.runtime.logs import CERTIFICATE_REMINDER, LoggedOnce
from koordpolicy.runtime.tls import Tls, context_of, stamp_of

LOG: Final = logging.getLogger(__name__)


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
        seen = stamp_of(self._tls)
        trouble = LoggedOnce(LOG, remind=CERTIFICATE_REMINDER)
        while True:
            await asyncio.sleep(self._seconds)
            now = stamp_of(self._tls)
            if now == seen:
                trouble.over()
                continue
            try:
                # A context of its own: a CA that was taken away must not count any more.
                self.context = context_of(self._tls)
            except (OSError, ssl.SSLError) as error:
                trouble.met(repr(now), "the renewed certificate is of no use yet: %s", error)
                continue
            seen = now
            trouble.over()
            LOG.info("the certificate was renewed")

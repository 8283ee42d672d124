"""Keeps the credentials of a running client fresh without standing in the way of requests."""

import asyncio
import logging
from typing import Final

from koordpolicy.kube.api.access import Access, ConfigurationError
from koordpolicy.kube.api.connection import Connection

_LOOK: Final = 30.0
"""Seconds between looks at the age of the credentials. Tokens of pods are rotated by the hour."""

_AGAIN: Final = 5.0
"""Seconds that must lie between two readings of everything, however many requests are refused."""

_log: Final = logging.getLogger(__name__)


class Credentials:
    """The present `access` of a connection, renewed in threads: reading may run a plugin that takes its time."""

    def __init__(self, connection: Connection) -> None:
        self.access: Access = connection.access
        self._connection = connection
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._clock = asyncio.get_running_loop().time
        self._next_look = self._clock() + _LOOK
        self._last_reading = float("-inf")

    def current(self) -> Access:
        """What to use for the next request; begins to look after its age in the background when it is time."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + _LOOK
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
        return self.access

    async def replace(self, refused: Access) -> bool:
        """After the server did not know us: whether there is something else to try now.

        Reads everything anew, once for all requests that were refused together, and not again within seconds.
        """
        async with self._lock:
            if self.access is not refused:
                return True
            now = self._clock()
            if now - self._last_reading < _AGAIN:
                return False
            self._last_reading = now
            try:
                self.access = await asyncio.to_thread(self._connection.reload)
            except ConfigurationError as error:
                _log.warning("credentials cannot be renewed: %s", error)
                return False
            return True

    async def close(self) -> None:
        """Wait for a look that is under way: threads cannot be stopped."""
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        async with self._lock:
            try:
                fresh = await asyncio.to_thread(self._connection.refresh)
            except ConfigurationError as error:
                _log.warning("credentials cannot be renewed: %s", error)
                return
            if fresh != self.access:
                self.access = fresh

"""The connections of one client."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Final
from weakref import WeakSet

import aiohttp

from koordpolicy.kube.api.sockets import ask_for_signs_of_life

_BUFFER: Final = 2**18
"""Bytes read ahead of whoever takes them."""

_IDLE: Final = 60.0
"""Seconds an idle connection is kept: less than servers do, so that it is we who close it."""

_LEAVE: Final = 1.0
"""Seconds that connections get to say that they close, and as many again for their sockets to be gone."""


@contextlib.asynccontextmanager
async def session_of(connections: int, agent: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A session of as many connections at most, all of them closed at the end."""
    sockets: WeakSet[socket.socket] = WeakSet()

    def connected(info: aiohttp.AddrInfoType) -> socket.socket:
        made = _socket(info)
        sockets.add(made)
        return made

    connector = aiohttp.TCPConnector(
        limit=connections, keepalive_timeout=_IDLE, ttl_dns_cache=60, socket_factory=connected
    )
    # Within a cluster, unpacking costs more than the network.
    headers = {"User-Agent": agent, "Accept": "application/json", "Accept-Encoding": "identity"}
    session = aiohttp.ClientSession(
        connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=_BUFFER
    )
    try:
        yield session
    finally:
        # TLS waits for the other side's goodbye, half a minute; uvloop's never ends where its socket was gone before.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                await session.close()
        # TLS says goodbye after the session has ended; a loop that stops first would leave sockets behind.
        for _ in range(int(_LEAVE / 0.01)):
            if all(made.fileno() == -1 for made in list(sockets)):
                break
            await asyncio.sleep(0.01)


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family=family, type=kind, proto=protocol)
    ask_for_signs_of_life(made)
    return made

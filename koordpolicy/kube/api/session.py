"""The connections of one client."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakSet

import aiohttp

_BUFFER: Final = 2**18
"""Bytes read ahead of whoever takes them."""

_IDLE: Final = 60.0
"""Seconds an idle connection is kept: less than servers do, so that it is we who close it."""

_SIGNS_OF_LIFE: Final = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)
"""Asking a silent peer after 15 s, every 5 s, and giving it up after three times or 30 s without an answer."""

_LEAVE: Final = 1.0
"""Seconds that connections get to close."""


@asynccontextmanager
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
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=_BUFFER
        ) as session:
            yield session
    finally:
        # TLS says goodbye after the session has ended; a loop that stops first would leave sockets behind.
        for _ in range(int(_LEAVE / 0.01)):
            if all(made.fileno() == -1 for made in list(sockets)):
                break
            await asyncio.sleep(0.01)


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SIGNS_OF_LIFE:
        option = getattr(socket, name, None)  # not every system has them
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made

"""Clients of a server that do not behave, and how to look at what becomes of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvloop

from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
"""Processes run on uvloop; where there is none, on the other."""

HANG = 30.0
"""Seconds after which what should come soon is taken not to come at all."""


def play(loop: str, scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene on one of the loops; one that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(4 * HANG):
            await scene()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(bounded())


async def well(_: Request) -> Response:
    return Response.text("ok\n")


async def echo(request: Request) -> Response:
    return Response(200, request.body)


ROUTES = (
    Route("GET", "/healthz", well, Protection.OPEN),
    Route("POST", "/echo", echo, Protection.OPEN),
)

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


class Client:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        with suppress(RuntimeError):  # as uvloop says that the connection is closed
            self.writer.write(data)

    async def status(self) -> int:
        """The status of the next answer; 0 when the connection ends without one."""
        async with asyncio.timeout(HANG):
            try:
                line = await self._reader.readline()
            except ConnectionError:
                return 0
        return int(line.split()[1]) if line else 0

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer."""
        status = await self.status()
        async with asyncio.timeout(HANG):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            return status, await self._reader.readexactly(int(length[0].partition(b":")[2]))

    async def ended(self) -> bool:
        """Wait until the server ends the connection; false when it does not."""
        try:
            async with asyncio.timeout(HANG):
                while await self._reader.read(65_536):
                    pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def client(
    server: HttpServer, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Client]:
    """A connection to a server, from an address of this host."""
    more: dict[str, Any] = {} if tls is None else {"ssl": tls}
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0), **more)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def is_well(server: HttpServer, tls: ssl.SSLContext | None = None) -> bool:
    """Whether a newcomer is answered."""
    async with client(server, tls) as one:
        one.send(HEALTH)
        return await one.status() == 200


def trusting(authority: bytes) -> ssl.SSLContext:
    """A client's side of TLS, for a server whose certificate is this one (PEM)."""
    return ssl.create_default_context(cadata=authority.decode())

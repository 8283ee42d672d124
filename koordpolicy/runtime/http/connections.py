"""The connections of a server: how many there may be, and how long each may keep us waiting.

A connection *waits* while the next move is its client's: the handshake, a request's head and body, the pause between
two requests, an answer that is not taken yet. It *works* while a handler does. One that waits has a deadline, and when
all places are taken it makes room for a newcomer: of the address that keeps most of them waiting, the one that has
waited longest. So a flood of requests that never come to an end shuts out nobody who asks in earnest, and the files
that the rest of the process needs to open are never taken by clients.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol

from aiohttp import web

from koordpolicy.runtime.http.certificates import Certificates
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.plain import OpenAnswering, PlainConnection

_PAUSE: Final = 0.05
"""Seconds until the next try to accept where the process may open no more files."""
_LAST: Final = 1.0
"""Seconds at the end for the requests of those who have begun to ask."""
_GOODBYE: Final = 5.0
"""Seconds for the end of a TLS connection."""
_NEVER: Final = 1e9
_DROP: Final = 1.0
"""Seconds in which the rest of a body that nobody wants is read, so that the client sees the answer."""


class HttpConnection(web.RequestHandler):
    """One connection, from when it is accepted. `certificate` is what the client has proved to be, by TLS."""

    __slots__ = ("_among", "_idle", "address", "certificate", "deadline", "socket", "starting")

    def __init__(self, among: "Connections", accepted: socket.socket, address: str) -> None:
        limits = among.limits
        super().__init__(
            among.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=_NEVER,  # deadlines are ours
            access_log=None,  # type: ignore[arg-type]  # None is how the library takes it for none
            max_line_size=limits.line,
            max_field_size=limits.line,
            max_headers=limits.headers,
            lingering_time=_DROP,
            auto_decompress=False,
        )
        self.socket = accepted
        self.address = address
        self.certificate: Mapping[str, Any] | None = None
        self.starting: asyncio.Task[None] | None = None
        self.deadline = 0.0
        self._among = among
        self._idle = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.certificate = transport.get_extra_info("peercert") or None
        self.deadline = self._among.now() + self._among.limits.head
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._among.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._idle = False
            self.deadline = self._among.now() + self._among.limits.head
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is not HTTP. The library would log a traceback for each, and whoever sends them fill the log."""
        self._among.events.closed("malformed")
        answer = web.Response(status=status, text=f"{message or 'malformed'}\n")
        answer.force_close()
        return answer

    def log_exception(self, *said: Any, exc_info: BaseException | None = None, **_: Any) -> None:
        """What the library itself did not foresee."""
        self._among.events.failed("other", exc_info or RuntimeError(*said))

    def asks(self) -> None:
        """The head of a request is there; its body, and who asks, may take their own time."""
        self._idle = False
        limits = self._among.limits
        self.deadline = self._among.now() + limits.body_seconds + limits.seconds

    def works(self) -> None:
        """A handler has the next move."""
        self._among.works(self)

    def waits(self) -> None:
        """The client has the next move: to take the answer, and to ask anew."""
        self._idle = True
        self.deadline = self._among.now() + self._among.limits.idle
        self._among.waits(self)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a next request has come."""
        return self._idle

    def cut(self) -> None:
        """End it at once."""
        if self.starting is not None and not self.starting.done():
            self.starting.cancel()
        elif self.transport is not None:
            self.transport.abort()
        self._among.forget(self)


class ConnectionObserver(OpenAnswering, Protocol):
    """What a server is told of its connections, and who answers the plain requests on them."""

    def closed(self, reason: str) -> None:
        """One was ended by us: it was `slow` or `idle`, what it sent was `malformed`, or others needed the `room`."""
        ...

    def failed(self, path: str, error: BaseException) -> None:
        """Something went wrong that nobody foresaw."""
        ...


Connection = PlainConnection | HttpConnection


class Connections:
    """All connections of one server."""

    def __init__(
        self,
        server: web.Server,
        limits: ServerLimits,
        certificates: Certificates | None,
        events: ConnectionObserver,
    ) -> None:
        self.server = server
        self.limits = limits
        self.now = asyncio.get_running_loop().time
        self._certificates = certificates
        self.events = self.answering = events
        self.ending = False
        self.answers: set[asyncio.Task[None]] = set()
        """What answers plain requests and takes time."""
        self._places = limits.places
        # Of each address those that wait, the longest first: insertion keeps the order.
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._all: set[Connection] = set()
        self._freed = asyncio.Event()
        self._starts: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._all)

    @asynccontextmanager
    async def accepting(self, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
        """Accept connections within; at the end those that work are given their time, and those that begin to ask a little."""
        tasks = [asyncio.create_task(self._accept(one), name="accept") for one in sockets]
        late = asyncio.create_task(self._end_the_late(), name="deadlines")
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self._take_last_requests()
            tasks += [late, *self._starts]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for one in [one for waiting in self._waiting.values() for one in waiting if not one.is_idle]:
                one.cut()  # nobody knows whether the rest of its request would ever come
            self.ending = True
            for one in tuple(self._all):
                if isinstance(one, PlainConnection):
                    one.end_when_idle()
            self.server.pre_shutdown()
            await asyncio.gather(self.server.shutdown(self.limits.seconds), self._end_answers())

    async def _end_answers(self) -> None:
        """Give plain requests that are being answered their time."""
        if self.answers:
            await asyncio.wait(self.answers, timeout=self.limits.seconds)

    async def _take_last_requests(self) -> None:
        """Let those ask who have begun to, by a handshake or a part of a request; what has come is taken in any case."""
        for _ in range(int(_LAST / _PAUSE)):
            await asyncio.sleep(0)
            if all(one.is_idle for waiting in self._waiting.values() for one in waiting):
                return
            await asyncio.sleep(_PAUSE)

    def works(self, connection: Connection) -> None:
        """It is not the client that is waited for."""
        waiting = self._waiting.get(connection.address)
        if waiting is not None and waiting.pop(connection, self) is None and not waiting:
            del self._waiting[connection.address]

    def waits(self, connection: Connection) -> None:
        """It is the client that is waited for, until the connection's deadline."""
        if connection in self._all:
            self._waiting.setdefault(connection.address, {})[connection] = None
            self._freed.set()

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._all.discard(connection)
        self._freed.set()
        self.works(connection)

    def hand_over(self, connection: PlainConnection, transport: asyncio.Transport, received: bytes) -> None:
        """Let the library go on with a connection whose client asks for more than is plain."""
        own = HttpConnection(self, connection.socket, connection.address)
        deadline = connection.deadline
        self.forget(connection)
        self._all.add(own)
        self.waits(own)
        transport.set_protocol(own)
        own.connection_made(transport)
        own.deadline = deadline
        own.data_received(received)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._make_room()
                    await asyncio.sleep(_PAUSE)
                continue
            while len(self._all) >= self._places and not self._make_room():
                self._freed.clear()  # all of them work, and each has a time in which it is done
                await self._freed.wait()
            # Whoever comes by a Unix socket has no address, and is a front: all are one.
            connection = PlainConnection(self, accepted, str(peer[0]) if peer else "")
            connection.deadline = self.now() + self.limits.handshake
            self._all.add(connection)
            self.waits(connection)
            connection.starting = start = asyncio.create_task(self._start(connection))
            self._starts.add(start)
            start.add_done_callback(self._starts.discard)

    async def _start(self, connection: PlainConnection) -> None:
        """Shake hands. What goes wrong here concerns nobody but the client."""
        loop, limits = asyncio.get_running_loop(), self.limits
        try:
            if self._certificates is None:
                await loop.connect_accepted_socket(lambda: connection, connection.socket)
            else:
                await loop.connect_accepted_socket(
                    lambda: connection,
                    connection.socket,
                    ssl=self._certificates.context,
                    ssl_handshake_timeout=limits.handshake,
                    ssl_shutdown_timeout=_GOODBYE,
                )
        except (OSError, ssl.SSLError, TimeoutError, asyncio.CancelledError):
            self.forget(connection)
            with suppress(OSError):
                connection.socket.close()

    def _make_room(self) -> bool:
        """End a connection that waits; false when none does."""
        if not self._waiting:
            return False
        most = max(self._waiting.values(), key=len)
        next(iter(most)).cut()
        self.events.closed("room")
        return True

    async def _end_the_late(self) -> None:
        """End connections whose deadline is over: one look at all of them now and then costs less than a timer each."""
        limits = self.limits
        pause = min(1.0, min(limits.handshake, limits.head, limits.body_seconds, limits.idle) / 4)
        while True:
            await asyncio.sleep(pause)
            for one in tuple(self._all):
                if isinstance(one, PlainConnection):
                    one.hand_over_if_late()
            now = self.now()
            late = [one for waiting in self._waiting.values() for one in waiting if one.deadline <= now]
            for one in late:
                self.events.closed("idle" if one.is_idle else "slow")
                one.cut()

"""Connections for small requests: one request after another on each, as many connections as are needed at a time.

A client for all purposes spends several times as much on each request as the request itself takes; bindings and
Events come by the thousand. Streams, lists, large bodies and proxies are left to such a client.
"""

import asyncio
import math
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, cast

from yarl import URL

from koordpolicy.kube.api.access import Access
from koordpolicy.kube.api.answer import ApiResponse, Reading
from koordpolicy.kube.api.sockets import ask_for_signs_of_life

_IDLE: Final = 60.0
"""Seconds an idle connection is kept: less than servers do, so that it is we who close it."""
_LEAVE: Final = 1.0
"""Seconds that connections get to close."""


class NotConnected(ConnectionError):
    """The server was not reached."""


class NotTrusted(NotConnected):
    """The server's certificate was not accepted, or ours was not."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where requests go, and the part of their heads that is always the same."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    server_name: str
    path: str
    head: str


class Wires:
    """The connections of one client. Not for more at a time than the caller lets through."""

    def __init__(self, agent: str, connect: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._agent = agent
        self._connect_seconds = connect
        self._access: Access | None = None
        self._place: ServerAddress | None = None
        self._idle: deque[_Wire] = deque()
        self._all: set[_Wire] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf

    def place(self, access: Access) -> ServerAddress | None:
        """Where the requests go that need this access; None where they need a proxy, or it is no address."""
        if access is not self._access:
            self._place = _place(access, self._agent)
            self._access = access
        return self._place

    async def request(
        self,
        place: ServerAddress,
        method: str,
        target: str,
        body: bytes | None,
        content_type: str,
        seconds: float,
    ) -> ApiResponse:
        """The answer to a request that is sent once.

        Raises NotConnected where it was not sent, ConnectionError when the connection broke, TimeoutError.
        """
        lines = f"{method} {place.path}{target} HTTP/1.1\r\n{place.head}"
        if body is None:
            sent = f"{lines}\r\n".encode("ascii")
        else:
            told = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
            sent = f"{lines}{told}".encode("ascii") + body
        deadline = self._loop.time() + seconds
        wire = self._take(place)
        if wire is None:
            async with asyncio.timeout_at(deadline):
                wire = await self._connect(place)
        if deadline < self._alarm_at:
            self._wake_at(deadline)
        try:
            answer = await wire.ask(sent, deadline)
        except BaseException:
            wire.drop()
            raise
        self._give_back(wire, answer)
        return answer

    async def close(self) -> None:
        """Close all connections."""
        for timer in (self._sweeping, self._alarm):
            if timer is not None:
                timer.cancel()
        for wire in list(self._all):
            wire.drop()
        if self._all:
            await asyncio.wait([wire.gone for wire in self._all], timeout=_LEAVE)

    def _take(self, place: ServerAddress) -> "_Wire | None":
        """The connection that was used last, which is the likeliest to be alive."""
        while self._idle:
            wire = self._idle.pop()
            if wire.open and wire.leads_to(place):
                return wire
            wire.drop()
        return None

    def _give_back(self, wire: "_Wire", answer: ApiResponse) -> None:
        if answer.last or not wire.open:
            wire.drop()
            return
        wire.idle_since = self._loop.time()
        self._idle.append(wire)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_IDLE, self._sweep)

    def _sweep(self) -> None:
        """Close what was not needed for a while."""
        while self._idle and self._idle[0].idle_since + _IDLE <= self._loop.time():
            self._idle.popleft().drop()
        again = self._idle[0].idle_since + _IDLE if self._idle else None
        self._sweeping = None if again is None else self._loop.call_at(again, self._sweep)

    def _wake_at(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = self._loop.call_at(when, self._end_the_late)

    def _end_the_late(self) -> None:
        """End the requests whose time is over: one timer for all, since a timer for each costs more than to look here."""
        now = self._loop.time()
        self._alarm, self._alarm_at = None, math.inf
        for wire in self._all:
            wire.end_if_late(now)
        next_one = min((wire.deadline for wire in self._all), default=math.inf)
        if next_one < math.inf:
            self._wake_at(next_one)

    async def _connect(self, place: ServerAddress) -> "_Wire":
        wire = _Wire(place, self._all)
        server_name = place.server_name if place.tls is not None else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                try:
                    await self._loop.create_connection(
                        lambda: wire, place.host, place.port, ssl=place.tls, server_hostname=server_name
                    )
                except BaseException:
                    wire.forget()
                    raise
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise NotTrusted(str(error)) from error
        except TimeoutError as error:
            raise NotConnected(f"no connection within {self._connect_seconds:g} s") from error
        except OSError as error:
            raise NotConnected(str(error)) from error
        return wire


class _Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, place: ServerAddress, among: "set[_Wire]") -> None:
        self.idle_since = 0.0
        self.deadline = math.inf
        self.open = False
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._place = place
        self._among = among
        self._transport: asyncio.Transport | None = None
        self._reading: Reading | None = None
        self._waits: asyncio.Future[ApiResponse] | None = None

    def leads_to(self, place: ServerAddress) -> bool:
        """Whether it ends there. Tokens may have changed meanwhile."""
        mine = self._place
        if place is mine:
            return True
        same = (place.host, place.port, place.server_name) == (mine.host, mine.port, mine.server_name)
        return same and place.tls is mine.tls

    def ask(self, sent: bytes, deadline: float) -> "asyncio.Future[ApiResponse]":
        """Send a request; the answer to wait for."""
        assert self._transport is not None and self._waits is None
        self.deadline = deadline
        self._reading = Reading()
        self._waits = waits = self._loop.create_future()
        self._transport.write(sent)
        return waits

    def end_if_late(self, now: float) -> None:
        """Stop waiting for an answer that should be there by now."""
        if self.deadline <= now:
            self._finish(TimeoutError())

    def drop(self) -> None:
        """Close it at once; nobody waits for an orderly goodbye."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def forget(self) -> None:
        """Drop it, and do not wait: uvloop says nothing of sockets that it closes between TCP's handshake and TLS's."""
        self.drop()
        self._among.discard(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of TLS over TCP or of TCP, whatever the loop
        self._among.add(self)
        self.open = True
        ask_for_signs_of_life(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._reading is None:
            self.drop()  # nobody has asked for anything
            return
        try:
            answer = self._reading.feed(data)
        except ConnectionError as error:
            self._finish(error)
        else:
            if answer is not None:
                self._finish(answer)

    def eof_received(self) -> None:
        self.open = False
        answer = None if self._reading is None else self._reading.end()
        self._finish(answer or ConnectionError("the server closed the connection"))

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._among.discard(self)
        self.gone.set_result(None)
        self._finish(ConnectionError(str(error or "the connection was closed")))

    def _finish(self, found: ApiResponse | OSError) -> None:
        """Give what was waited for to whoever waits."""
        waits, self._waits, self._reading = self._waits, None, None
        self.deadline = math.inf
        if waits is None or waits.done():
            return
        if isinstance(found, ApiResponse):
            waits.set_result(found)
        else:
            waits.set_exception(found)


@asynccontextmanager
async def wires_of(agent: str, connect: float) -> AsyncIterator[Wires]:
    """Connections that are all closed at the end."""
    wires = Wires(agent, connect)
    try:
        yield wires
    finally:
        await wires.close()


def _place(access: Access, agent: str) -> ServerAddress | None:
    if access.proxy:
        return None
    try:
        url = URL(access.server, encoded=True)
        host, port = url.host, url.port
        authority = url.raw_authority.rpartition("@")[2]
    except ValueError:
        return None
    if not host or port is None or url.user is not None or url.scheme not in {"http", "https"}:
        return None
    told = {
        "Host": authority,
        "User-Agent": agent,
        "Accept": "application/json",
        "Accept-Encoding": "identity",
    }
    if access.authorization:
        told["Authorization"] = access.authorization
    lines = [f"{name}: {value}" for name, value in told.items()]
    if any(not line.isascii() or not line.isprintable() for line in lines):
        return None
    path = "" if url.raw_path == "/" else url.raw_path
    head = "".join(f"{line}\r\n" for line in lines)
    return ServerAddress(host, port, access.tls, access.server_name or host, path, head)

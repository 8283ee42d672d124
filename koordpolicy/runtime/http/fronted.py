"""The connections of fronts: HTTP/1.1 on a Unix socket, where a request is answered within the call that brings it.

A front has shaken hands, kept clients to limits and read their heads as strictly as it is done here, by the same functions. It sends
one request at a time on a connection, and each of them whole: so there are no deadlines of clients here, and no library.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol, cast

from koordpolicy.runtime.front.messages import MessageProblem, RequestHead, plain_answer, read_request
from koordpolicy.runtime.http.bodies import BodyProblem, Room
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.messages import Headers, target_of, written
from koordpolicy.runtime.http.routing import Request, Response

LOG: Final = logging.getLogger(__name__)

_HEAD: Final = 131_072
"""Bytes of a head: what a front takes of its clients is shorter, and it says beside that who they are."""
_EARLY: Final = "a request before the answer to the one before it"  # which no front sends


class Answering(Protocol):
    """Who answers what fronts bring."""

    limits: ServerLimits
    room: Room

    def answer_front(self, request: Request) -> Response | Awaitable[Response]:
        """The answer to a whole request; nothing is raised."""
        ...

    def is_last(self, response: Response) -> bool:
        """Whether an answer ends its connection."""
        ...

    def closed(self, reason: str) -> None:
        """A connection was ended by us."""
        ...


class FrontConnection(asyncio.Protocol):
    """One connection of a front."""

    __slots__ = ("_among", "_head", "_held", "_received", "_transport", "task")

    def __init__(self, among: "FrontConnections") -> None:
        self.task: asyncio.Task[None] | None = None
        """What waits for an answer, None while none is due."""
        self._among = among
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._head: RequestHead | None = None
        self._held = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has that form, not that class
        self._among.all.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._among.all.discard(self)
        self._release()
        self._transport = None
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self.task is not None:  # no front asks before it has been answered
            self._end(MessageProblem(400, _EARLY))
            return
        try:
            asked = self._whole()
        except (MessageProblem, BodyProblem) as problem:
            self._end(problem)
            return
        if asked is None:
            return
        answer = self._among.answering.answer_front(asked)
        if isinstance(answer, Response):
            self._send(asked, answer)
        else:
            self.task = asyncio.ensure_future(self._wait(asked, answer))

    def close(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.close()

    def _whole(self) -> Request | None:
        """A request, once it is whole. Raises `MessageProblem` and `BodyProblem`."""
        head, limits = self._head, self._among.answering.limits
        if head is None:
            head = read_request(self._received, _HEAD, limits.body)
            if head is None:
                return None
            self._head = head
        came = min(len(self._received) - head.taken, head.length)
        self._among.answering.room.take(came - self._held)
        self._held = came
        end = head.taken + head.length
        if len(self._received) < end:
            return None
        if len(self._received) > end:
            raise MessageProblem(400, _EARLY)
        body = bytes(memoryview(self._received)[head.taken : end])
        del self._received[:end]
        self._head = None
        path, query = target_of(head)
        return Request(head.method, path, query, Headers(head), body)

    async def _wait(self, asked: Request, answer: Awaitable[Response]) -> None:
        response = await answer
        self.task = None
        self._send(asked, response)

    def _send(self, asked: Request, response: Response) -> None:
        self._release()
        if self._transport is None:
            return
        last = self._among.answering.is_last(response)
        self._transport.write(written(response, last=last, body=asked.method != "HEAD"))
        if last:
            self._transport.close()

    def _end(self, problem: MessageProblem | BodyProblem) -> None:
        self._among.answering.closed("malformed")
        if self._transport is not None:
            self._transport.write(plain_answer(problem.status, str(problem), later=problem.status == 503))
            self._transport.close()

    def _release(self) -> None:
        self._among.answering.room.give_back(self._held)
        self._held = 0


class FrontConnections:
    """All connections of fronts of one server."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.all: set[FrontConnection] = set()

    @asynccontextmanager
    async def accepting(self, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
        """Accept connections within; what is asked already is answered at the end."""
        loop, limits = asyncio.get_running_loop(), self.answering.limits
        servers = [
            await loop.create_unix_server(lambda: FrontConnection(self), sock=one, backlog=limits.backlog)
            for one in sockets
        ]
        try:
            yield
        finally:
            for server in servers:
                server.close()
            waiting = [one.task for one in self.all if one.task is not None]
            if waiting:
                await asyncio.wait(waiting, timeout=limits.seconds)
            for one in tuple(self.all):
                one.close()

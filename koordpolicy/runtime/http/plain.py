"""Connections on which a request is answered within the call that brings it, as long as requests are plain.

A plain request is what API servers send: a POST whose head comes in one piece, with a length and nothing of what concerns a
connection or a body's form, to a route that is open to whoever may connect. Reading it takes a twentieth of what a library
takes for whatever HTTP allows. At the first request of another kind the connection is handed to the library, with all that
has come, and stays there: so limits, refusals and odd messages are told in one place.
"""

import asyncio
import socket
from collections.abc import Awaitable
from typing import Final, Protocol, cast

from koordpolicy.runtime.front.messages import MessageProblem, RequestHead, read_request
from koordpolicy.runtime.http.bodies import BodyProblem, Room
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.messages import Headers, target_of, written
from koordpolicy.runtime.http.routing import Request, Response, Route

_LONGEST: Final = 262_144
"""Bytes of a body that is held here; a library reads longer ones piece by piece."""
_AHEAD: Final = 65_536
"""Bytes that a client may send before its answer is there or taken; then it is not read any more."""
_METHOD: Final = b"POST "
_PACKED: Final = b"\r\ncontent-encoding:"


class OpenAnswering(Protocol):
    """Who answers plain requests."""

    room: Room

    def open_route(self, method: str, path: str) -> Route | None:
        """The route of a request to which anyone may send one; None for all others."""
        ...

    def answer_open(self, route: Route, request: Request) -> Response | Awaitable[Response]:
        """The answer to a whole request; nothing is raised."""
        ...

    def answer_problem(self, path: str, problem: BodyProblem) -> Response:
        """The answer to a body that is not taken."""
        ...

    def is_last(self, response: Response) -> bool:
        """Whether an answer ends its connection."""
        ...


class Among(Protocol):
    """What a connection knows of all of them."""

    limits: ServerLimits
    ending: bool
    answers: set[asyncio.Task[None]]

    @property
    def answering(self) -> OpenAnswering:
        """Who answers."""
        ...

    def now(self) -> float:
        """Seconds that only grow."""
        ...

    def works(self, connection: "PlainConnection") -> None:
        """It is not the client that is waited for."""
        ...

    def waits(self, connection: "PlainConnection") -> None:
        """It is the client that is waited for."""
        ...

    def forget(self, connection: "PlainConnection") -> None:
        """It is gone."""
        ...

    def hand_over(self, connection: "PlainConnection", transport: asyncio.Transport, received: bytes) -> None:
        """Let the library go on with it, from what was received and not answered."""
        ...


class PlainConnection(asyncio.Protocol):
    """One connection, from when it is accepted until it ends or is handed over."""

    __slots__ = (
        "_among", "_full", "_head", "_held", "_idle", "_received", "_transport", "_working", "address", "deadline", "socket", "starting",
    )  # fmt: skip

    def __init__(self, among: Among, accepted: socket.socket, address: str) -> None:
        self.socket = accepted
        self.address = address
        self.starting: asyncio.Task[None] | None = None
        self.deadline = 0.0
        self._among = among
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._head: RequestHead | None = None
        self._held = 0
        self._idle = self._working = self._full = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a next request has come."""
        return self._idle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has that form, not that class
        self.deadline = self._among.now() + self._among.limits.head

    def connection_lost(self, exc: BaseException | None) -> None:
        self._transport = None
        if not self._working:  # what an answer is being made of is held until then
            self._release()
        self._among.forget(self)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        if self._idle:
            self._begin()
        self._received += data
        if not (self._working or self._full):
            self._take()
        elif len(self._received) > _AHEAD and self._transport is not None:
            self._transport.pause_reading()

    def hand_over_if_late(self) -> None:
        """A body that takes its time is the library's: it has the deadline for that, and says so."""
        if self._head is not None:
            self._hand_over()

    def end_when_idle(self) -> None:
        """End it, unless an answer is being made, which is then the last."""
        if self._transport is not None and not self._working:
            self._transport.close()

    def cut(self) -> None:
        """End it at once."""
        if self.starting is not None and not self.starting.done():
            self.starting.cancel()
        elif self._transport is not None:
            self._transport.abort()
        self._among.forget(self)

    def _take(self) -> None:
        """Answer what has come, request by request, until one is not whole or its answer takes time."""
        while self._received and not (self._working or self._full) and self._transport is not None:
            if self._transport.is_closing():
                self._received.clear()
                return
            if self._idle:  # it came in one piece with what was answered
                self._begin()
            head = self._head or self._plain()
            if head is None:
                self._hand_over()
                return
            path, query = target_of(head)
            route = self._among.answering.open_route(head.method, path)
            if route is None:
                self._hand_over()
                return
            self._head = head
            end = head.taken + head.length
            come = min(len(self._received), end) - head.taken
            try:
                self._among.answering.room.take(come - self._held)
            except BodyProblem as problem:
                self._head = None
                refused = self._among.answering.answer_problem(path, problem)
                self._send(refused, last=True)
                return
            self._held = come  # what a head promises takes no room before it comes
            if come < head.length:
                return
            body = bytes(memoryview(self._received)[head.taken : end])
            del self._received[:end]
            self._head = None
            asked = Request(head.method, path, query, Headers(head), body)
            answer = self._among.answering.answer_open(route, asked)
            if isinstance(answer, Response):
                self._send(answer)
            else:
                self._wait(answer)

    def _begin(self) -> None:
        """Something of a request is there: the rest of its head has the time of one."""
        self._idle = False
        self.deadline = self._among.now() + self._among.limits.head

    def _plain(self) -> RequestHead | None:
        """The head of a plain request; None for everything else."""
        received, limits = self._received, self._among.limits
        if not received.startswith(_METHOD):
            return None
        try:
            head = read_request(received, limits.line, min(limits.body, _LONGEST))
        except MessageProblem:
            return None
        if head is None or head.taken > limits.line or len(head.text) != head.taken:
            return None
        if head.text.count(b"\r\n") - 2 > limits.headers or _PACKED in head.text.lower():
            return None
        return head

    def _wait(self, answer: Awaitable[Response]) -> None:
        """Answer later; meanwhile the connection works. Whoever goes away meanwhile does not undo what was begun."""
        self._working = True
        self._among.works(self)
        task = asyncio.ensure_future(self._answered(answer))
        self._among.answers.add(task)
        task.add_done_callback(self._among.answers.discard)

    async def _answered(self, answer: Awaitable[Response]) -> None:
        try:
            response = await answer
        finally:
            self._working = False
            self._release()
        self._send(response)
        self._go_on()

    def _go_on(self) -> None:
        if self._transport is not None and not (self._working or self._full):
            self._transport.resume_reading()
            self._take()

    def _send(self, response: Response, *, last: bool = False) -> None:
        self._release()
        if self._transport is None:
            return
        last = last or self._among.ending or self._among.answering.is_last(response)
        self._transport.write(written(response, last=last))
        self._idle = True
        self.deadline = self._among.now() + self._among.limits.idle
        self._among.works(self)
        self._among.waits(self)  # anew: of those that wait, it has waited least
        if last:
            self._received.clear()
            self._transport.close()

    def _hand_over(self) -> None:
        transport = self._transport
        if transport is None:
            return
        self._release()
        self._transport = self._head = None
        received = bytes(self._received)
        self._received.clear()
        self._among.hand_over(self, transport, received)

    def _release(self) -> None:
        if self._held:
            self._among.answering.room.give_back(self._held)
            self._held = 0

"""The two sides of a front: a client's connection by TLS, and one to the server behind."""

import socket
import ssl
from enum import Enum, auto
from typing import Final, Protocol

from koordpolicy.runtime.front.carrying import Proof
from koordpolicy.runtime.front.counts import AnsweredBy, FrontCounts
from koordpolicy.runtime.front.messages import (
    CERTIFICATE,
    FORWARDED,
    MessageProblem,
    RequestHead,
    ResponseHead,
    certificate_text,
    plain_answer,
    read_request,
    read_response,
    with_headers,
)
from koordpolicy.runtime.front.settings import FrontLimits

_PIECE: Final = 65_536
READ: Final = 1
WRITE: Final = 2


class Turn(Enum):
    """Whose move is next."""

    HANDSHAKE = auto()
    HEAD = auto()
    BODY = auto()
    SERVER = auto()
    ANSWER = auto()


class Loop(Protocol):
    """What the two sides know of the loop that they run in."""

    limits: FrontLimits
    closing: bool
    proof: Proof
    counts: FrontCounts

    def now(self) -> float:
        """Seconds that only grow."""
        ...

    def watch(self, what: "Watched", interest: int) -> None:
        """Hear when a socket can be read or written."""
        ...

    def forget(self, what: "Watched") -> None:
        """A connection ends."""
        ...

    def hold(self, count: int) -> int:
        """Make room for a body's bytes. Raises `MessageProblem` where too many are held."""
        ...

    def release(self, count: int) -> int:
        """Give it back; 0."""
        ...

    def ask(self, client: "Client", certificate: str, *, forwarded: bool) -> None:
        """Have a request answered."""
        ...

    def carry(self, client: "Client", certificate: str, *, forwarded: bool) -> None:
        """Have a request answered that the server behind has not."""
        ...

    def free(self, server: "Server") -> None:
        """A connection to the server behind can be asked again."""
        ...


class Client:
    """A client's connection. `deadline` is when the present turn is over; `request` is what the server is asked."""

    __slots__ = (
        "_front", "_held", "_last", "_out", "_received", "address", "asked", "body", "certificate", "closed", "deadline", "idle",
        "request", "server", "socket", "turn", "until",
    )  # fmt: skip

    def __init__(self, front: Loop, wrapped: ssl.SSLSocket, address: str) -> None:
        self.socket = wrapped
        self.address = address
        self.certificate = ""
        self.turn = Turn.HANDSHAKE
        self.deadline = front.now() + front.limits.handshake
        self.idle = False
        self.asked = False
        self.request: RequestHead | None = None
        self.body = b""
        self.server: Server | None = None
        self.until = 0.0
        self.closed = False
        self._front = front
        self._received = bytearray()
        self._out = memoryview(b"")
        self._held = 0
        self._last = False

    def ready(self, _: int) -> None:
        """The socket can be read or written."""
        try:
            if self.turn is Turn.HANDSHAKE:
                self._shake_hands()
            elif self.turn is Turn.ANSWER:
                self._write()
            else:
                self._read()
        except ssl.SSLWantReadError:
            self._front.watch(self, READ)
        except ssl.SSLWantWriteError:
            self._front.watch(self, WRITE)
        except OSError:
            self.close()

    def _shake_hands(self) -> None:
        self.socket.do_handshake()
        self.certificate = certificate_text(self.socket.getpeercert())
        self._wait_for_request()
        self._read()

    def _wait_for_request(self) -> None:
        self.turn, self.idle = Turn.HEAD, True
        self.deadline = self._front.now() + self._front.limits.idle
        self._front.watch(self, READ)

    def _read(self) -> None:
        limits = self._front.limits
        while True:
            piece = self.socket.recv(_PIECE)
            if not piece:
                self.close()
                return
            if self.idle:
                self.idle, self.asked = False, True
                self.deadline = self._front.now() + limits.head_seconds
            self._received += piece
            if self.turn is Turn.SERVER:
                # Nobody who asks in earnest writes a second request before the first is answered.
                if len(self._received) > limits.head:
                    self.close()
                    return
            else:
                self._take()
            if not self.socket.pending():
                return

    def _take(self) -> None:
        """Hand a request on, once it is whole, or say why it is not."""
        try:
            self._take_whole()
        except MessageProblem as problem:
            refusal = plain_answer(problem.status, str(problem), later=problem.status == 503)
            self.answer(refusal, AnsweredBy.FRONT, last=True)

    def _take_whole(self) -> None:
        """Hand a request on, once it is whole. Raises `MessageProblem`."""
        front, head = self._front, self.request
        if head is None:
            head = read_request(self._received, front.limits.head, front.limits.body)
            if head is None:
                return
            self.request, self.turn = head, Turn.BODY
            self.deadline = front.now() + front.limits.body_seconds
            if head.waits and len(self._received) < head.taken + head.length:
                self.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        # Of the room for bodies it takes what has come: who only says that much is to come keeps nobody else from it.
        came = min(len(self._received) - head.taken, head.length)
        self._held += front.hold(came - self._held)
        end = head.taken + head.length
        if len(self._received) < end:
            return
        self.body = bytes(memoryview(self._received)[head.taken : end])
        del self._received[:end]
        self.turn = Turn.SERVER
        self.until = front.now() + head.seconds
        self.deadline = self.until + 1.0
        certificate, forwarded = self.certificate, head.told.get(FORWARDED.lower())
        if forwarded is not None:
            certificate = head.told.get(CERTIFICATE.lower(), "")
            if not front.proof.holds(forwarded, head.path, certificate, self.body):
                raise MessageProblem(403, f"{FORWARDED} is for fronts of this server alone")
        front.ask(self, certificate, forwarded=forwarded is not None)

    def answer(self, text: bytes, by: AnsweredBy, *, last: bool = False) -> None:
        """Send an answer whole; the `last` one ends the connection."""
        if self.closed:
            return
        self._front.counts.answered(by, text)
        request, self.request, self.body = self.request, None, b""
        self._last = last or self._front.closing or (request is not None and request.closes)
        if self._last and b"\r\nConnection: close\r\n" not in text:
            end = text.index(b"\r\n\r\n") + 4
            text = with_headers(text[:end], {"Connection": "close"}) + text[end:]
        self.turn, self._out = Turn.ANSWER, memoryview(text)
        self.deadline = self._front.now() + self._front.limits.idle
        try:
            self._write()
        except ssl.SSLWantWriteError:
            self._front.watch(self, WRITE)
        except OSError:  # SSLWantReadError as well: nobody renegotiates here
            self.close()

    def _write(self) -> None:
        while self._out:
            self._out = self._out[self.socket.send(self._out) :]
        self._held = self._front.release(self._held)
        if self._last:
            self.close()
            return
        self._wait_for_request()
        if self._received:
            self.idle = False
            self.deadline = self._front.now() + self._front.limits.head_seconds
            self._take()

    def end_when_idle(self, newcomers: float) -> None:
        """End it, unless a request is coming just now, or still to come in so many seconds because the client is new here."""
        self.ready(READ)  # what has come by now is asked in earnest
        if self.closed:
            return
        if self.turn is Turn.HANDSHAKE or (self.idle and not self.asked):
            self.deadline = min(self.deadline, self._front.now() + newcomers)
        elif self.idle:
            self.close()

    def close(self) -> None:
        """End it, with what is asked for it."""
        if self.closed:
            return
        self.closed = True
        self._held = self._front.release(self._held)
        if self.server is not None:
            self.server.close()
        self._front.forget(self)
        self.socket.close()


class Server:
    """A connection to the server behind: it answers one request at a time, for `client`."""

    __slots__ = (
        "_front",
        "_out",
        "_received",
        "certificate",
        "client",
        "closed",
        "forwarded",
        "socket",
        "until",
    )

    def __init__(self, front: Loop, connected: socket.socket) -> None:
        self.socket = connected
        self.client: Client | None = None
        self.certificate = ""
        self.forwarded = False
        self.until = 0.0
        self.closed = False
        self._front = front
        self._out = memoryview(b"")
        self._received = bytearray()

    def ask(self, client: Client, text: bytes) -> None:
        """Send a request. Raises OSError."""
        self.client, client.server = client, self
        self._out = memoryview(text)
        self._write()

    def ready(self, mask: int) -> None:
        """The socket can be read or written."""
        try:
            if mask & WRITE and self._out:
                self._write()
            if mask & READ:
                self._read()
        except (OSError, MessageProblem):
            self.lost()

    def _write(self) -> None:
        while self._out:
            try:
                self._out = self._out[self.socket.send(self._out) :]
            except BlockingIOError:
                self._front.watch(self, READ | WRITE)
                return
        self._front.watch(self, READ)

    def _read(self) -> None:
        piece = self.socket.recv(_PIECE)
        client = self.client
        if not piece or client is None or client.request is None:
            self.lost()
            return
        self._received += piece
        head = read_response(self._received, _PIECE, body=client.request.has_answer_body)
        if head is None or len(self._received) < head.taken + head.length:
            return
        if head.again:
            self.lost()
            return
        self._answered(client, head)

    def _answered(self, client: Client, head: ResponseHead) -> None:
        text = head.text + bytes(memoryview(self._received)[head.taken : head.taken + head.length])
        self._received.clear()
        self.client = client.server = None
        if head.closes or self._out:
            self.close()
        else:
            self._front.free(self)
        client.answer(text, AnsweredBy.MANAGER, last=head.closes)

    def lost(self) -> None:
        """It is gone, or has no answer: whoever waits for one is asked for elsewhere."""
        client, self.client = self.client, None
        self.close()
        if client is not None:
            client.server = None
            self._front.carry(client, self.certificate, forwarded=self.forwarded)

    def close(self) -> None:
        """End it."""
        if self.closed:
            return
        self.closed = True
        self._front.forget(self)
        self.socket.close()


Watched = Client | Server

"""ttrpc: containerd's RPC for one machine (its PROTOCOL.md), unary calls alone: frames over a Unix socket.

NRI carries two connections of it in one socket, in both directions (`trunk.py`). What asks and answers in one direction stands here: the two
ends parse what comes in the very call that brings it, which takes an eighth of the time of a call of gRPC from Python.
"""  # fmt: skip

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final, TypeAlias, cast

from koordpolicy.cri.sockets import OwnSocket
from koordpolicy.cri.wire import Field, Form, Message, Shape, WireError

LOG: Final = logging.getLogger(__name__)

FRAME: Final = struct.Struct(">IIBB")
REQUEST, RESPONSE = 1, 2
LONGEST: Final = 4 << 20
"""Bytes of a message, as the protocol has it."""
_STREAMS: Final = 1 << 32
_MOST_TOLD: Final = 100

_ASKED: Final[Shape] = {
    "service": Field(1, Form.TEXT),
    "method": Field(2, Form.TEXT),
    "payload": Field(3, Form.BYTES),
}
_STATUS: Final[Shape] = {"code": Field(1, Form.INTEGER), "message": Field(2, Form.TEXT)}
_ANSWERED: Final[Shape] = {"status": Field(1, Form.MESSAGE, _STATUS), "payload": Field(2, Form.BYTES)}


class Status(IntEnum):
    """What an answer says that is none, by the numbers and names of gRPC."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    UNAVAILABLE = 14


_STATUS_OF: Final[Mapping[int, Status]] = {one.value: one for one in Status}


class Disconnected(Exception):
    """The other side has gone, or speaks another protocol; the message says which."""


class Refused(Exception):
    """An error of ours that the other side is to get in place of an answer, or of theirs."""

    def __init__(self, words: str, status: Status = Status.UNKNOWN) -> None:
        super().__init__(words)
        self.status = status


AnswerNow: TypeAlias = Callable[[str, bytes], bytes]
"""Answers a method, by its name without the service, at once. Raises `Refused`, by `not_known` for one that it does not know."""


def not_known(method: str) -> Refused:
    """What is said of a method that nobody answers."""
    return Refused(f"{method} is not known here", Status.UNIMPLEMENTED)


def frame(stream: int, kind: int, data: bytes) -> bytes:
    """A message as it goes over the socket."""
    return FRAME.pack(len(data), stream, kind, 0) + data


def frames(buffer: bytearray) -> Iterator[tuple[int, int, bytes]]:
    """Stream, kind and data of each whole message, which is taken out of the buffer. Raises `Disconnected`."""
    while len(buffer) >= FRAME.size:
        size, stream, kind, _ = FRAME.unpack_from(buffer)
        if size > LONGEST:
            raise Disconnected(f"a message of {size} bytes is longer than the protocol has it")
        end = FRAME.size + size
        if len(buffer) < end:
            return
        data = bytes(buffer[FRAME.size : end])
        del buffer[:end]
        yield stream, kind, data


def next_stream(last: int) -> int:
    """The number of the next question on a connection: odd ones are a client's."""
    return (last + 2) % _STREAMS


def question(service: str, method: str, payload: bytes) -> bytes:
    """A request."""
    made = Message(_ASKED)
    made.put_text("service", service)
    made.put_text("method", method)
    made.put_data("payload", payload)
    return made.encoded()


def asked(data: bytes) -> tuple[str, bytes]:
    """Method and payload of a request. Raises `WireError`."""
    request = Message(_ASKED, data)
    return request.text("method"), request.data("payload")


def answer_of(payload: bytes) -> bytes:
    """A response."""
    made = Message(_ANSWERED)
    made.put_data("payload", payload)
    return made.encoded()


def refusal_of(refused: Refused) -> bytes:
    """A response that is none."""
    status = Message(_STATUS)
    status.put_integer("code", refused.status)
    status.put_text("message", str(refused))
    made = Message(_ANSWERED)
    made.put_message("status", status)
    return made.encoded()


class Failures:
    """Errors that nobody foresaw, in the answers of one who answers: they cost the call that met them, and no other."""

    def __init__(self) -> None:
        self._told: set[tuple[str, type[Exception]]] = set()

    def answer(self, method: str, error: Exception) -> bytes:
        """The response in place of an answer. The log has the traceback of the first of each sort."""
        sort = method, type(error)
        if sort not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(sort)
            LOG.error("%s could not be answered", method, exc_info=error)
        return refusal_of(Refused(f"{method} failed here by an error of ours, which the log tells of"))


def payload_of(data: bytes) -> bytes:
    """What a response says. Raises `Refused`, `WireError`."""
    answer = Message(_ANSWERED, data)
    if answer.has("status"):
        status = answer.message("status")
        if code := status.integer("code"):
            raise Refused(status.text("message"), _STATUS_OF.get(code, Status.UNKNOWN))
    return answer.data("payload")


class TtrpcServer:
    """Answers at a Unix socket, each question in the call that brings it."""

    def __init__(self, path: Path, answer: AnswerNow) -> None:
        self.path = path
        self._answer = answer
        self._failures = Failures()
        self._socket = OwnSocket(path)
        self._server: asyncio.Server | None = None
        self._connections: set[_Answering] = set()

    async def start(self, mode: int = 0o660) -> None:
        """Listen. A socket that a killed process left is taken away. Raises OSError."""
        self._socket.prepare()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, str(self._socket.early))
        self._socket.place(mode)

    async def stop(self) -> None:
        """End: nothing is under way, since each question is answered at once."""
        self._socket.unlink()
        if self._server is not None:
            self._server.close()
        for one in list(self._connections):
            one.close()

    def _accept(self) -> "_Answering":
        return _Answering(self._answer, self._failures, self._connections)


class _Connection(asyncio.Protocol):
    """A socket whose other side is not read from while it does not read what we write."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            for stream, kind, message in frames(self._buffer):
                self.heard(stream, kind, message)
        except (Disconnected, WireError):
            self.close()

    def heard(self, stream: int, kind: int, data: bytes) -> None:
        """Take a message. Raises `WireError`."""
        raise NotImplementedError

    def send(self, stream: int, kind: int, data: bytes) -> None:
        """Say a message, if there is anybody yet."""
        if self._transport is not None:
            self._transport.write(frame(stream, kind, data))

    def close(self) -> None:
        """Leave."""
        if self._transport is not None:
            self._transport.close()


class _Answering(_Connection):
    def __init__(self, answer: AnswerNow, failures: Failures, among: "set[_Answering]") -> None:
        super().__init__()
        self._answer = answer
        self._failures = failures
        self._among = among
        among.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.discard(self)

    def heard(self, stream: int, kind: int, data: bytes) -> None:
        if kind != REQUEST:
            return
        method, payload = asked(data)
        try:
            made = answer_of(self._answer(method, payload))
        except Refused as refused:
            made = refusal_of(refused)
        except Exception as error:  # noqa: BLE001  # whatever it is, others on the connection wait for their answers
            made = self._failures.answer(method, error)
        self.send(stream, RESPONSE, made)


class TtrpcChannel:
    """A client of the server at a Unix socket, which may come later, or again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asking: _Asking | None = None
        self._one = asyncio.Lock()

    async def call(self, service: str, method: str, payload: bytes, seconds: float) -> bytes:
        """The answer to a call. Raises `Refused`; OSError and `Disconnected` where nobody is there; TimeoutError, `WireError`."""
        async with asyncio.timeout(seconds):
            asking = self._asking
            if asking is None or asking.gone:
                asking = await self._connected()
            answer = await asking.ask(question(service, method, payload))
        return payload_of(answer)

    async def close(self) -> None:
        """Give the connection up."""
        if self._asking is not None:
            self._asking.close()

    async def _connected(self) -> "_Asking":
        async with self._one:
            if self._asking is None or self._asking.gone:
                loop = asyncio.get_running_loop()
                _, self._asking = await loop.create_unix_connection(_Asking, str(self.path))
            return self._asking


class _Asking(_Connection):
    def __init__(self) -> None:
        super().__init__()
        self.gone = False
        self._stream = -1
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def ask(self, request: bytes) -> bytes:
        self._stream = stream = next_stream(self._stream)
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[stream] = waiting
        try:
            self.send(stream, REQUEST, request)
            return await waiting
        finally:
            del self._waiting[stream]

    def heard(self, stream: int, kind: int, data: bytes) -> None:
        waiting = self._waiting.get(stream)
        if kind == RESPONSE and waiting is not None and not waiting.done():
            waiting.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        for one in self._waiting.values():
            if not one.done():
                one.set_exception(Disconnected("it has gone"))

"""ttrpc and the connections that NRI puts into one: frames over a Unix socket, requests in both directions.

ttrpc is containerd's RPC for one machine (its PROTOCOL.md); NRI carries two connections of it in one socket, each piece behind its number and length
(`pkg/net/multiplex` of containerd's nri). Unary calls alone: NRI has no others.
"""  # fmt: skip

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from koordpolicy.cri.wire import Field, Form, Message, Shape, WireError

_PIECE: Final = struct.Struct(">II")
_FRAME: Final = struct.Struct(">IIBB")
_REQUEST, _RESPONSE = 1, 2
_LONGEST: Final = 4 << 20
"""Bytes of a message, as the protocol has it."""
_BUFFER: Final = 4096
"""Bytes of a piece: readers in Go take no more at once than their buffer holds."""
_UNIMPLEMENTED: Final = 12
_UNKNOWN: Final = 2

_ASKED: Final[Shape] = {
    "service": Field(1, Form.TEXT),
    "method": Field(2, Form.TEXT),
    "payload": Field(3, Form.MESSAGE, {}),
}
_STATUS: Final[Shape] = {"code": Field(1, Form.INTEGER), "message": Field(2, Form.TEXT)}
_ANSWERED: Final[Shape] = {
    "status": Field(1, Form.MESSAGE, _STATUS),
    "payload": Field(2, Form.MESSAGE, {}),
}


class Disconnected(Exception):
    """The other side has gone, or speaks another protocol; the message says which."""


class Refused(Exception):
    """An error of ours that the other side is to get in place of an answer, or of theirs."""


Answer: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a method, by its name without the service. Raises `Refused`; KeyError for one that it does not know."""


@dataclass(slots=True)
class Trunk:
    """One socket with two connections in it: on `served` we answer, on `asked` the other side does."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    served: int
    asked: int
    _buffers: dict[int, bytearray] = field(default_factory=dict)
    _waiting: dict[int, "asyncio.Future[bytes]"] = field(default_factory=dict)
    _stream: int = -1

    async def run(self, answer: Answer) -> None:
        """Answer, and take answers, one after the other, until the other side goes. Raises `Disconnected`."""
        try:
            while True:
                await self._piece(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Disconnected("it has gone") from None
        except WireError as error:
            raise Disconnected(f"it says what is no message: {error}") from None
        finally:
            for one in self._waiting.values():
                one.cancel()
            self.writer.close()

    async def call(self, service: str, method: str, payload: bytes, seconds: float) -> bytes:
        """Ask the other side, while `run` runs. Raises `Refused`, TimeoutError."""
        request = Message(_ASKED)
        request.put_text("service", service)
        request.put_text("method", method)
        request.put_message("payload", Message({}, payload))
        self._stream += 2
        stream, waiting = self._stream, asyncio.get_running_loop().create_future()
        self._waiting[stream] = waiting
        try:
            await self._send(self.asked, stream, _REQUEST, request.encoded())
            async with asyncio.timeout(seconds):
                return _payload(await waiting)
        finally:
            del self._waiting[stream]

    async def _piece(self, answer: Answer) -> None:
        connection, length = _PIECE.unpack(await self.reader.readexactly(_PIECE.size))
        if length > _LONGEST + _FRAME.size:
            raise Disconnected(f"a piece of {length} bytes is longer than any message")
        buffer = self._buffers.setdefault(connection, bytearray())
        buffer += await self.reader.readexactly(length)
        while len(buffer) >= _FRAME.size:
            size, stream, kind, _ = _FRAME.unpack_from(buffer)
            if size > _LONGEST:
                raise Disconnected(f"a message of {size} bytes is longer than the protocol has it")
            if len(buffer) < _FRAME.size + size:
                return
            data = bytes(buffer[_FRAME.size : _FRAME.size + size])
            del buffer[: _FRAME.size + size]
            if connection == self.served and kind == _REQUEST:
                await self._send(self.served, stream, _RESPONSE, await _answered(answer, data))
            elif connection == self.asked and kind == _RESPONSE:
                waiting = self._waiting.get(stream)
                if waiting is not None and not waiting.done():
                    waiting.set_result(data)

    async def _send(self, connection: int, stream: int, kind: int, data: bytes) -> None:
        frame = _FRAME.pack(len(data), stream, kind, 0) + data
        for at in range(0, len(frame), _BUFFER):
            piece = frame[at : at + _BUFFER]
            self.writer.write(_PIECE.pack(connection, len(piece)) + piece)
        await self.writer.drain()


async def connect(path: Path, served: int, asked: int) -> Trunk:
    """Connect to a socket. Raises OSError."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    return Trunk(reader, writer, served, asked)


async def _answered(answer: Answer, data: bytes) -> bytes:
    request, made = Message(_ASKED, data), Message(_ANSWERED)
    method = request.text("method")
    try:
        payload = await answer(method, request.message("payload").encoded())
    except KeyError:
        made.put_message("status", _status(_UNIMPLEMENTED, f"{method} is not known here"))
    except Refused as refused:
        made.put_message("status", _status(_UNKNOWN, str(refused)))
    else:
        made.put_message("payload", Message({}, payload))
    return made.encoded()


def _status(code: int, words: str) -> Message:
    made = Message(_STATUS)
    made.put_integer("code", code)
    made.put_text("message", words)
    return made


def _payload(data: bytes) -> bytes:
    answer = Message(_ANSWERED, data)
    status = answer.message("status")
    if status.integer("code"):
        raise Refused(status.text("message"))
    return answer.message("payload").encoded()

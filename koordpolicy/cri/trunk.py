"""The connections that NRI puts into one socket: each piece behind its number and length, requests in both directions.

As `pkg/net/multiplex` of containerd's nri has it.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from koordpolicy.cri.ttrpc import (
    FRAME,
    LONGEST,
    REQUEST,
    RESPONSE,
    Disconnected,
    Failures,
    Refused,
    answer_of,
    asked,
    frame,
    frames,
    next_stream,
    payload_of,
    question,
    refusal_of,
)
from koordpolicy.cri.wire import WireError

_PIECE: Final = struct.Struct(">II")
_BUFFER: Final = 4096
"""Bytes of a piece: readers in Go take no more at once than their buffer holds."""

Answer: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a method, by its name without the service. Raises `Refused`, by `not_known` for one that it does not know."""


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
    _failures: Failures = field(default_factory=Failures)

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
        self._stream = stream = next_stream(self._stream)
        waiting = self._waiting[stream] = asyncio.get_running_loop().create_future()
        try:
            await self._send(self.asked, frame(stream, REQUEST, question(service, method, payload)))
            async with asyncio.timeout(seconds):
                return payload_of(await waiting)
        finally:
            del self._waiting[stream]

    async def _piece(self, answer: Answer) -> None:
        connection, length = _PIECE.unpack(await self.reader.readexactly(_PIECE.size))
        if length > LONGEST + FRAME.size:
            raise Disconnected(f"a piece of {length} bytes is longer than any message")
        buffer = self._buffers.setdefault(connection, bytearray())
        buffer += await self.reader.readexactly(length)
        for stream, kind, data in frames(buffer):
            if connection == self.served and kind == REQUEST:
                await self._send(self.served, frame(stream, RESPONSE, await self._answered(answer, data)))
            elif connection == self.asked and kind == RESPONSE:
                waiting = self._waiting.get(stream)
                if waiting is not None and not waiting.done():
                    waiting.set_result(data)

    async def _answered(self, answer: Answer, data: bytes) -> bytes:
        method, payload = asked(data)
        try:
            return answer_of(await answer(method, payload))
        except Refused as refused:
            return refusal_of(refused)
        except Exception as error:  # noqa: BLE001  # whatever it is, others on the connection wait for their answers
            return self._failures.answer(method, error)

    async def _send(self, connection: int, data: bytes) -> None:
        for at in range(0, len(data), _BUFFER):
            piece = data[at : at + _BUFFER]
            self.writer.write(_PIECE.pack(connection, len(piece)) + piece)
        await self.writer.drain()


async def connect(path: Path, served: int, asked: int) -> Trunk:
    """Connect to a socket. Raises OSError."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    return Trunk(reader, writer, served, asked)

"""Bodies of requests: taken within limits, and unpacked within limits.

A thousand bytes of gzip can become a million. So each step has a limit of its own that is looked at before the step is done;
`json_bodies.py` has those of what is read as JSON.
"""

import asyncio
import zlib
from collections.abc import Mapping
from typing import Final

from aiohttp import web

_ASIDE: Final = 16_384
"""Bytes of gzip above which they are unpacked in a thread: so many become 16 MB at the most."""
_MEMBERS: Final = 100
_GZIP: Final = 31
"""zlib's word for: a gzip header, and the largest window."""


class BodyProblem(Exception):
    """A body that is not taken: the message says why, `status` is HTTP's."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class Room:
    """The bytes that all bodies of a server may take at a time."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> None:
        """Raises `BodyProblem` (503) when there is no room left for so many bytes."""
        if size > self._left:
            raise BodyProblem(503, "too many large requests at once; try again", {"Retry-After": "1"})
        self._left -= size

    def give_back(self, size: int) -> None:
        """They are not needed any more."""
        self._left += size


async def read_body(request: web.BaseRequest, most: int, seconds: float, room: Room) -> bytes:
    """The whole body, unpacked: `most` bytes, sent and unpacked, within `seconds`.

    It takes its length of `room`, which the caller gives back. Raises `BodyProblem`.
    """
    packed = is_packed(request.headers.get("Content-Encoding", ""))
    if request.content_length is not None and request.content_length > most:
        raise _too_large(most)
    taken = 0
    try:
        if request.content.is_eof():
            body = request.content.read_nowait()
            taken = _grow(room, taken, len(body), most)
        else:
            try:
                async with asyncio.timeout(seconds):
                    parts: list[bytes] = []
                    async for part in request.content.iter_any():
                        taken = _grow(room, taken, len(part), most)
                        parts.append(part)
            except TimeoutError:
                raise BodyProblem(408, f"the body was not there within {seconds:g} s") from None
            body = b"".join(parts)
        if packed:
            body = await unpacked(body, most)
            room.give_back(taken)
            taken = 0
            room.take(len(body))
        return body
    except web.RequestPayloadError:
        room.give_back(taken)
        raise BodyProblem(400, "the body is malformed, or ends too early") from None
    except BaseException:
        room.give_back(taken)
        raise


def _grow(room: Room, taken: int, more: int, most: int) -> int:
    if taken + more > most:
        raise _too_large(most)
    room.take(more)
    return taken + more


def _too_large(most: int) -> BodyProblem:
    return BodyProblem(413, f"the body is too large; {most} bytes are taken at most")


def is_packed(encoding: str) -> bool:
    """Whether a body is gzip, by the header Content-Encoding. Raises `BodyProblem` (415) for what is not supported."""
    said = encoding.strip().lower()
    if said not in {"", "identity", "gzip", "x-gzip"}:
        raise BodyProblem(415, "the body's encoding is not supported; send it plain, or as gzip")
    return said.endswith("gzip")


async def unpacked(packed: bytes, most: int) -> bytes:
    """What was packed by gzip, `most` bytes of it; long bodies in a thread. Raises `BodyProblem`."""
    if len(packed) < _ASIDE:
        return gunzip(packed, most)
    return await asyncio.to_thread(gunzip, packed, most)


def gunzip(packed: bytes, most: int) -> bytes:
    """What was packed by gzip, `most` bytes of it. Raises `BodyProblem`."""
    parts: list[bytes] = []
    left = most
    for _ in range(_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        try:
            # One byte more than is permitted tells whether there is more.
            part = member.decompress(packed, left + 1)
        except zlib.error:
            raise BodyProblem(400, "the body says that it is gzip, and is not") from None
        if len(part) > left:
            raise _too_large(most)
        if not member.eof:
            raise BodyProblem(400, "the body is gzip that ends too early")
        parts.append(part)
        left -= len(part)
        packed = member.unused_data
        if not packed:
            return b"".join(parts)
    raise BodyProblem(400, f"the body has more than {_MEMBERS} members of gzip")

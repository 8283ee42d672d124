"""Bodies of requests: taken within limits, unpacked within limits, and read as JSON within limits.

Twenty bytes of JSON can become a thousand bytes of lists, and a thousand bytes of gzip a million. So each step has a
limit of its own that is looked at before the step is done.
"""

import asyncio
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from aiohttp import web

DEPTH: Final = 100
"""Lists and objects within each other, at most: a custom resource's definition has some thirty."""
MEMORY: Final = 128_000_000
"""Bytes that a body may become when it is read as JSON, unless whoever reads it says otherwise."""

_PIECE: Final = 262_144
_SHORT: Final = 4096
_ASIDE: Final = 16_384
"""Bytes of gzip above which they are unpacked in a thread: so many become 16 MB at the most."""
_MEMBERS: Final = 100
_GZIP: Final = 31
"""zlib's word for: a gzip header, and the largest window."""

# What CPython takes for each, with its place in what holds it and the garbage collector's share. A test compares.
_OBJECT: Final = 256
_LIST: Final = 112
_VALUE: Final = 48
_QUOTE: Final = 36
_STRUCTURE: Final = b'"[]{}'
_NOT_STRUCTURE: Final = bytes(sorted(set(range(256)) - set(_STRUCTURE)))
_WIDEST: Final = re.compile(rb"[\xf0-\xff]|\\u[dD][89abAB]")
_WIDE: Final = re.compile(rb"[\xc4-\xef]|\\u(?!00)")


class BodyProblem(Exception):
    """A body that is not taken: the message says why, `status` is HTTP's."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class JsonProblem(ValueError):
    """What is not JSON, or more of it than is read; the message says where, or how much."""


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
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip"}:
        raise BodyProblem(415, "the body's encoding is not supported; send it plain, or as gzip")
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
        if encoding != "identity":
            body = await _unpacked(body, most)
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


async def _unpacked(packed: bytes, most: int) -> bytes:
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


def read_json(body: bytes, memory: int = MEMORY, depth: int = DEPTH) -> Any:
    """A body as JSON values that take no more than `memory` bytes and are nested no deeper than `depth`.

    Both are looked at before anything is made. Raises `JsonProblem`.
    """
    needed = memory_needed(body)
    if needed > memory:
        raise JsonProblem(f"the JSON may take {needed} bytes of memory; {memory} are permitted")
    if _count(body, b"[") + _count(body, b"{") > depth and is_deeper(body, depth):
        raise JsonProblem(f"the JSON is nested more than {depth} levels deep")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JsonProblem(f"not JSON: {error}") from None


def write_json(value: Any) -> bytes:
    """JSON values as a body."""
    return msgspec.json.encode(value)


def memory_needed(body: bytes) -> int:
    """Bytes that a body takes at most as JSON values, itself not counted: told from its punctuation alone."""
    structure = (
        _count(body, b"{") * _OBJECT
        + _count(body, b"[") * _LIST
        + (_count(body, b",") + 1) * _VALUE
        + _count(body, b'"') * _QUOTE
    )
    # One character beyond Latin-1 makes all of its text two or four bytes wide.
    width = 1
    if not body.isascii() or (b"\\" in body and b"\\u" in body):  # one byte is found much faster than two
        width = 4 if _WIDEST.search(body) else 2 if _WIDE.search(body) else 1
    return structure + len(body) * width


def _count(body: bytes, character: bytes) -> int:
    """How often it stands in a body; many bytes are looked at some dozens at a time, which `bytes.count` does not do."""
    if len(body) < _SHORT:
        return body.count(character)
    every = np.frombuffer(body, dtype=np.uint8)
    pieces = (every[at : at + _PIECE] for at in range(0, len(body), _PIECE))
    return sum(int(np.count_nonzero(piece == character[0])) for piece in pieces)


def is_deeper(body: bytes, depth: int) -> bool:
    """Whether lists and objects stand within each other more than `depth` deep."""
    level, within, start = 0, 0, 0
    while start < len(body):
        end = min(start + _PIECE, len(body))
        while end < len(body) and body[end - 1] == 0x5C:  # an escape stays in one piece
            end += 1
        piece = body[start:end]
        start = end
        if b"\\" in piece:
            piece = _without_escapes(piece)
        marks = np.frombuffer(piece.translate(None, _NOT_STRUCTURE), dtype=np.uint8)
        if not len(marks):
            continue
        quotes = marks == 0x22
        inside = (np.cumsum(quotes) + within) & 1
        # 0x20 apart from each other, `[` and `{` end in the bits 1011, `]` and `}` in 1101.
        steps = np.where(marks & 0x06 == 0x02, 1, -1)
        steps[quotes | (inside == 1)] = 0
        levels = np.cumsum(steps) + level
        if int(levels.max()) > depth:
            return True
        level, within = int(levels[-1]), int(inside[-1])
    return False


def _without_escapes(piece: bytes) -> bytes:
    """A piece of JSON with a blank for each character that a backslash escapes: a quote among them ends no text."""
    characters = np.frombuffer(piece, dtype=np.uint8).copy()
    backslashes = np.flatnonzero(characters == 0x5C)
    numbers = np.arange(len(backslashes))
    # Of backslashes in a row every other one is escaped itself.
    begins = np.diff(backslashes, prepend=-2) > 1
    escaping = (numbers - np.maximum.accumulate(np.where(begins, numbers, 0))) % 2 == 0
    escaped = backslashes[escaping] + 1
    characters[escaped[escaped < len(characters)]] = 0x20
    return characters.tobytes()

"""Bodies as JSON, read within limits: twenty bytes of JSON can become a thousand bytes of lists."""

import re
from typing import Any, Final

import msgspec
import numpy as np

DEPTH: Final = 100
"""Lists and objects within each other, at most: a custom resource's definition has some thirty."""
MEMORY: Final = 128_000_000
"""Bytes that a body may become when it is read as JSON, unless whoever reads it says otherwise."""

_PIECE: Final = 262_144
_SHORT: Final = 4096

# What CPython takes for each, with its place in what holds it and the garbage collector's share. A test compares.
_OBJECT: Final = 256
_LIST: Final = 112
_VALUE: Final = 48
_QUOTE: Final = 36
_MOST: Final = _OBJECT + 4
"""Bytes that one byte of JSON can take: none stands for more than an object, and its text is four bytes wide at most."""
_STRUCTURE: Final = b'"[]{}'
_NOT_STRUCTURE: Final = bytes(sorted(set(range(256)) - set(_STRUCTURE)))
_WIDEST: Final = re.compile(rb"[\xf0-\xff]|\\u[dD][89abAB]")
_WIDE: Final = re.compile(rb"[\xc4-\xef]|\\u(?!00)")


class JsonProblem(ValueError):
    """What is not JSON, or more of it than is read; the message says where, or how much."""


def read_json(body: bytes, memory: int = MEMORY, depth: int = DEPTH) -> Any:
    """A body as JSON values that take no more than `memory` bytes and are nested no deeper than `depth`.

    Both are looked at before anything is made. Raises `JsonProblem`.
    """
    if (len(body) + 1) * _MOST > memory:  # a few bytes take less whatever they are: none is looked at
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

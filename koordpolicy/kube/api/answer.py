"""Answers of HTTP/1.1, put together from what arrives.

No more of the protocol than an API server's answers to small requests need, and strict: what is not understood
ends the connection instead of being guessed at.
"""

import re
from dataclasses import dataclass
from typing import Final

_STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_HEADER: Final = re.compile(r"^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$", re.MULTILINE)
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LARGEST_HEAD: Final = 2**16
_LARGEST_BODY: Final = 2**28
"""Bytes. No object comes near the latter, and no page of a list."""

_BODILESS: Final = frozenset({204, 304})


class MalformedAnswer(ConnectionError):
    """What arrived is no answer of HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: names of headers are in small letters. `last` says that the connection serves no further one."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    last: bool = False

    def all(self, name: str) -> list[str]:
        """The values of a header, in order."""
        return [value for found, value in self.headers if found == name]

    def first(self, name: str) -> str:
        """The first value of a header, "" without one."""
        return next((value for found, value in self.headers if found == name), "")


class Reading:
    """One answer as it arrives. `feed` and `end` give it once it is whole, and raise MalformedAnswer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._status = 0
        self._headers: tuple[tuple[str, str], ...] = ()
        self._last = False
        self._length: int | None = None
        self._chunked = False
        self._chunks = bytearray()

    def feed(self, data: bytes) -> Answer | None:
        """Take in what has arrived; None while more is to come."""
        self._data += data
        while not self._status:
            if not self._head():
                return None
        if len(self._data) + len(self._chunks) > _LARGEST_BODY:
            raise MalformedAnswer("a body without end")
        if self._chunked:
            return self._answer(bytes(self._chunks)) if self._all_chunks() else None
        if self._length is None or len(self._data) < self._length:
            return None
        body = bytes(self._data[: self._length])
        del self._data[: self._length]
        return self._answer(body)

    def end(self) -> Answer | None:
        """Nothing more will arrive; None when that is too early."""
        if not self._status or self._chunked or self._length is not None:
            return None
        body = bytes(self._data)
        self._data.clear()
        self._last = True
        return self._answer(body)

    def _answer(self, body: bytes) -> Answer:
        # What follows the answer nobody has asked for.
        return Answer(self._status, self._headers, body, self._last or bool(self._data))

    def _head(self) -> bool:
        """Take the head off, if all of it has arrived."""
        end = self._data.find(b"\r\n\r\n")
        if end < 0 or end > _LARGEST_HEAD:
            if len(self._data) > _LARGEST_HEAD:
                raise MalformedAnswer("a head without end")
            return False
        head = self._data[:end].decode("latin-1")
        if not head.count("\r\n") == head.count("\r") == head.count("\n"):
            raise MalformedAnswer("a line with half an end")
        first, _, lines = head.replace("\r\n", "\n").partition("\n")
        del self._data[: end + 4]
        begin = _STATUS.fullmatch(first)
        if begin is None:
            raise MalformedAnswer(f"no status line: {first[:80]!r}")
        status = int(begin[2])
        if status == 101:
            raise MalformedAnswer("the server changes the protocol")
        if status < 200:
            return True  # only says that the answer is still to come
        self._status = status
        self._headers = tuple([(name.lower(), value.strip(" \t")) for name, value in _HEADER.findall(lines)])
        if lines and len(self._headers) != lines.count("\n") + 1:
            raise MalformedAnswer(f"no header: {_odd(lines)[:80]!r}")
        self._frame(old=begin[1] == "0")
        return True

    def _frame(self, *, old: bool) -> None:
        """How far the body goes."""
        self._last = old
        lengths = set()
        for name, value in self._headers:
            if name == "content-length":
                lengths.add(value)
            elif name == "transfer-encoding":
                if self._chunked or value.lower() != "chunked":
                    raise MalformedAnswer(f"an encoding nobody asked for: {value[:80]!r}")
                self._chunked = True
            elif name == "connection" and "close" in value.lower():
                self._last = True
        if self._status in _BODILESS:
            self._length, self._chunked = 0, False
        elif lengths and self._chunked:
            raise MalformedAnswer("two lengths of one body")
        elif lengths:
            length = lengths.pop()
            if lengths or not (length.isascii() and length.isdecimal()) or len(length) > 9:
                raise MalformedAnswer(f"an impossible length: {length[:80]!r}")
            self._length = int(length)

    def _all_chunks(self) -> bool:
        """Move the chunks that are whole to the body; whether it is whole with them."""
        data, at, whole = self._data, 0, False
        while (end := data.find(b"\r\n", at)) >= 0:
            size = bytes(data[at:end]).partition(b";")[0].strip()
            if not _SIZE.fullmatch(size):
                raise MalformedAnswer("a chunk without a size")
            begin, after = end + 2, end + 2 + int(size, 16)
            if after == begin:
                # Headers may follow the last chunk; an empty line is the end.
                close = data.find(b"\r\n\r\n", end)
                whole = close >= 0
                at = close + 4 if whole else at
                break
            if len(data) < after + 2:
                break
            if data[after : after + 2] != b"\r\n":
                raise MalformedAnswer("a chunk of another size than it says")
            self._chunks += data[begin:after]
            at = after + 2
        del data[:at]
        return whole


def _odd(lines: str) -> str:
    """The first line that is no header."""
    return next(line for line in lines.split("\n") if not _HEADER.fullmatch(line))

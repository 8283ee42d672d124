"""Answers of HTTP/1.1, put together from what arrives.

No more of the protocol than an API server's answers to small requests need, and strict: what is not understood
ends the connection instead of being guessed at.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

_NAME: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_HEAD: Final = re.compile(
    rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n]*+)?+((?:\r\n" + _NAME + rb":[^\r\n]*+)*+)\r\n\r\n"
)
_STATUS: Final = re.compile(rb"HTTP/1\.[01] [1-5][0-9]{2}(?: .*)?")
_HEADER: Final = re.compile(_NAME + rb":.*")
_KNOWN: Final = re.compile(
    r"\r\n(content-length|transfer-encoding|connection|warning|retry-after):([^\r\n]*)", re.IGNORECASE
)
"""The headers that mean anything to us. Others only have to be headers."""

_LENGTH: Final = re.compile(r"[0-9]{1,9}")
_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LARGEST_HEAD: Final = 2**16
_LARGEST_BODY: Final = 2**28
"""Bytes. No object comes near the latter, and no page of a list."""

_BODILESS: Final = frozenset({204, 304})


class MalformedAnswer(ConnectionError):
    """What arrived is no answer of HTTP/1.1."""


class ApiResponse(NamedTuple):
    """An answer with the headers that mean anything to us: names are in small letters.

    `last` says that the connection serves no further one.
    """

    status: int
    headers: Sequence[tuple[str, str]]
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

    __slots__ = ("_chunked", "_chunks", "_data", "_early", "_headers", "_last", "_length", "_status")

    def __init__(self) -> None:
        self._status = 0
        self._early = b""
        self._headers: Sequence[tuple[str, str]] = ()
        self._last = False
        self._length: int | None = None
        self._chunked = False
        self._data = bytearray()
        self._chunks = bytearray()

    def feed(self, data: bytes) -> ApiResponse | None:
        """Take in what has arrived; None while more is to come."""
        if not self._status:
            data = self._past_head(self._early + data)
            if not self._status:
                self._early = data
                return None
        length = self._length
        if length is None or self._data or len(data) < length:
            return self._piece(data)
        return self._answer(data[:length], more=len(data) > length)

    def end(self) -> ApiResponse | None:
        """Nothing more will arrive; None when that is too early."""
        if not self._status or self._chunked or self._length is not None:
            return None
        self._last = True
        return self._answer(bytes(self._data), more=False)

    def _answer(self, body: bytes, *, more: bool) -> ApiResponse:
        # What follows the answer nobody has asked for.
        return ApiResponse(self._status, self._headers, body, self._last or more)

    def _piece(self, data: bytes) -> ApiResponse | None:
        """Take in a part of a body, or the last one."""
        self._data += data
        if len(self._data) + len(self._chunks) > _LARGEST_BODY:
            raise MalformedAnswer("a body without end")
        if self._chunked:
            return self._answer(bytes(self._chunks), more=bool(self._data)) if self._all_chunks() else None
        if self._length is None or len(self._data) < self._length:
            return None
        return self._answer(bytes(self._data[: self._length]), more=len(self._data) > self._length)

    def _past_head(self, data: bytes) -> bytes:
        """What follows the head; as long as there is no status, what there is of a head."""
        while True:
            head = _HEAD.match(data)
            if (len(data) if head is None else head.end() - 4) > _LARGEST_HEAD:
                raise MalformedAnswer("a head without end")
            if head is None:
                if (end := data.find(b"\r\n\r\n")) >= 0:
                    raise MalformedAnswer(_fault(data[:end]))
                return data
            data = data[head.end() :]
            status = int(head[2])
            if status == 101:
                raise MalformedAnswer("the server changes the protocol")
            if status >= 200:
                self._status = status
                self._headers = [
                    (name.lower(), value.strip(" \t"))
                    for name, value in _KNOWN.findall(head[3].decode("latin-1"))
                ]
                self._frame(old=head[1] == b"0")
                return data
            # It only says that the answer is still to come.

    def _frame(self, *, old: bool) -> None:
        """How far the body goes."""
        self._last = old
        length = None
        for name, value in self._headers:
            if name == "content-length":
                if (length is not None and value != length) or not _LENGTH.fullmatch(value):
                    raise MalformedAnswer(f"an impossible length: {value[:80]!r}")
                length = value
            elif name == "transfer-encoding":
                if self._chunked or value.lower() != "chunked":
                    raise MalformedAnswer(f"an encoding nobody asked for: {value[:80]!r}")
                self._chunked = True
            elif name == "connection" and "close" in value.lower():
                self._last = True
        if self._status in _BODILESS:
            self._length, self._chunked = 0, False
        elif length is not None:
            if self._chunked:
                raise MalformedAnswer("two lengths of one body")
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


def _fault(head: bytes) -> str:
    """What is wrong with a head that is none."""
    lines = head.split(b"\r\n")
    if any(b"\r" in line or b"\n" in line for line in lines):
        return "a line with half an end"
    if not _STATUS.fullmatch(lines[0]):
        return f"no status line: {lines[0].decode('latin-1')[:80]!r}"
    odd = next(line for line in lines[1:] if not _HEADER.fullmatch(line))
    return f"no header: {odd.decode('latin-1')[:80]!r}"

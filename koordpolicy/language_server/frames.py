"""What a client sends, held to limits before the protocol's library reads it."""

import logging
import re
from typing import BinaryIO, Final

MOST_BYTES: Final = 16 << 20
"""Bytes of one message; a longer one is passed over."""

_MOST_PASSED_OVER: Final = 1 << 30
_MOST_HEADERS: Final = 32
_LONGEST_HEADER: Final = 4_096
_CHUNK: Final = 1 << 16
_LENGTH: Final = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\r?\n", re.IGNORECASE)
_LOG = logging.getLogger(__name__)


class BadFrameError(Exception):
    """A message whose end cannot be told: nothing behind it can be read."""


class Frames:
    """A stream of messages as the protocol's library reads it: two lines of header, and a body of that size.

    A message that is too long is logged and left out. Where one has no end that can be told, the stream ends,
    and `failed` is true.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.failed = False
        self._stream = stream
        self._lines: list[bytes] = []

    def readline(self) -> bytes:
        """The next line of a header; nothing at the end."""
        if not self._lines and not self.failed:
            try:
                size = self._next()
            except BadFrameError as error:
                _LOG.error("the client's messages cannot be read any further: %s", error)
                self.failed = True
                size = 0
            if size:
                self._lines = [b"Content-Length: %d\r\n" % size, b"\r\n"]
        return self._lines.pop(0) if self._lines else b""

    def read(self, size: int) -> bytes:
        """The body of a message; nothing where it ends early."""
        body = self._stream.read(size)
        return body if len(body) == size else b""

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def _next(self) -> int:
        """The size of the next message that is short enough; 0 at the end."""
        while (size := self._header()) > MOST_BYTES:
            _LOG.error("a message of %d bytes is passed over: %d are the most", size, MOST_BYTES)
            if not self._passed_over(size):
                return 0
        return size

    def _header(self) -> int:
        """The size that a header says; 0 at the end. Raises `BadFrameError`."""
        size: int | None = None
        for _ in range(_MOST_HEADERS):
            line = self._stream.readline(_LONGEST_HEADER)
            if not line:
                return 0
            if not line.endswith(b"\n"):
                raise BadFrameError(f"a line of a header has more than {_LONGEST_HEADER} bytes, or no end")
            if not line.strip():
                if not size:
                    raise BadFrameError("a header without Content-Length")
                return size
            if line.lower().startswith(b"content-length"):
                size = _size(line)
        raise BadFrameError(f"a header of more than {_MOST_HEADERS} lines")

    def _passed_over(self, size: int) -> bool:
        """Whether the stream goes on behind so many bytes."""
        while size:
            read = self._stream.read(min(size, _CHUNK))
            if not read:
                return False
            size -= len(read)
        return True


def _size(line: bytes) -> int:
    said = _LENGTH.fullmatch(line)
    size = int(said[1]) if said else 0
    if not 0 < size <= _MOST_PASSED_OVER:
        raise BadFrameError(f"`{line[:80].decode('ascii', 'replace').strip()}` is no length of a message")
    return size

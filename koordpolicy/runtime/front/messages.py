"""HTTP/1.1 as far as a front needs it: where a message ends, and a few headers. What is not plain is refused.

A front and the server behind it read the same bytes; what they could read differently, such as two lengths, lines that
are folded or end otherwise, and chunked bodies, which API servers do not send, is not passed on.
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from koordpolicy.model.time import NANOSECONDS, parse_duration

CERTIFICATE: Final = "Koordpolicy-Client-Certificate"
"""What the client has proved to be, by a certificate; written by fronts alone."""
FORWARDED: Final = "Koordpolicy-Forwarded"
"""That another front has sent a request on, and the proof that it is one."""
LONGEST: Final = 30.0
"""Seconds for a request that does not say how long its client waits."""
_MARGIN: Final = 0.1
"""Of the time that a client waits, this part is left for the way."""

_LINES: Final = rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*\r\n"
_REQUEST: Final = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.1\r\n" + _LINES)
_RESPONSE: Final = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n\0]*\r\n" + _LINES)
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n")
_TIMEOUT: Final = re.compile(rb"[?&]timeout=([0-9a-z.]{1,20})(?:&|$)")
_HOP: Final = re.compile(rb"\r\n(?:connection|keep-alive|expect|upgrade):[^\r\n]*", re.IGNORECASE)
_OURS: Final = re.compile(rb"\r\n(koordpolicy-[a-z-]+):[ \t]*([^\r\n]*)", re.IGNORECASE)
_END: Final = b"\r\n\r\n"


class MessageProblem(Exception):
    """A request that is not passed on; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The first lines of a request, `text`, without what concerns one connection alone; its body has `length` bytes.

    `taken` bytes of what came are the head. `told` are headers of fronts, which are in `text` no more. `seconds` until its client has given up. The
    client `closes` after the answer, and `waits` to be told to send the body.
    """

    text: bytes
    taken: int
    length: int
    path: bytes
    told: Mapping[str, str]
    closes: bool
    waits: bool
    method: str

    @property
    def has_answer_body(self) -> bool:
        """Whether a body follows the answer's head."""
        return self.method != "HEAD"

    @property
    def seconds(self) -> float:
        """Seconds that an answer may take."""
        return _seconds(self.path)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The first lines of an answer. With `again`, the server asks to be asked later, or another one to be."""

    text: bytes
    taken: int
    length: int
    closes: bool
    again: bool


def read_request(received: bytearray, longest: int, body: int) -> RequestHead | None:
    """The head of a request, None while it is not whole. Raises `MessageProblem`."""
    end = received.find(_END)
    if end < 0 or end > longest:
        if len(received) > longest:
            raise MessageProblem(431, f"the head has more than {longest} bytes")
        return None
    text = bytes(received[: end + 4])
    found = _REQUEST.fullmatch(text)
    if found is None:
        raise MessageProblem(400, "not a request of HTTP/1.1")
    lower = text.lower()
    if b"\r\ntransfer-encoding:" in lower:
        raise MessageProblem(411, "say the body's length: chunked ones are not taken")
    length = _length_of(lower)
    if length is None:
        raise MessageProblem(400, "the body's length cannot be read")
    if length > body:
        raise MessageProblem(413, f"the body has more than {body} bytes")
    closes = waits = False
    if b"\r\nconnection:" in lower or b"\r\nexpect:" in lower or b"\r\nupgrade:" in lower:
        closes = b"close" in b"".join(re.findall(rb"\r\nconnection:([^\r]*)", lower))
        waits = b"\r\nexpect:" in lower
        text = _HOP.sub(b"", text)
    told: dict[str, str] = {}
    if b"\r\nkoordpolicy-" in lower:
        told = {name.decode().lower(): value.decode("latin-1").strip() for name, value in _OURS.findall(text)}
        text = _OURS.sub(b"", text)
    return RequestHead(text, end + 4, length, found[2], told, closes, waits, found[1].decode())


def read_response(received: bytearray, longest: int, *, body: bool) -> ResponseHead | None:
    """The head of an answer, None while it is not whole; without `body` none follows. Raises `MessageProblem`."""
    end = received.find(_END)
    if end < 0:
        if len(received) > longest:
            raise MessageProblem(502, "the answer's head does not end")
        return None
    text = bytes(received[: end + 4])
    found = _RESPONSE.fullmatch(text)
    lower = text.lower()
    length = _length_of(lower)
    if found is None or length is None or b"\r\ntransfer-encoding:" in lower:
        raise MessageProblem(502, "the answer cannot be read")
    status = int(found[1])
    closes = False
    if b"\r\nconnection:" in lower:
        closes = b"close" in b"".join(re.findall(rb"\r\nconnection:([^\r]*)", lower))
        text = _HOP.sub(b"", text)
    again = status == 503 and b"\r\nretry-after:" in lower
    return ResponseHead(text, end + 4, length if body else 0, closes, again)


def with_headers(head: bytes, headers: Mapping[str, str]) -> bytes:
    """A head with more headers, whose values are plain."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head[:-2] + lines.encode("ascii") + b"\r\n"


def plain_answer(status: int, text: str, *, later: bool = False) -> bytes:
    """A few words, the last of a connection. `later` asks the client to come again, over another one."""
    body = f"{text}\n".encode("utf-8", "backslashreplace")
    again = "Retry-After: 1\r\n" if later else ""
    head = (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"{again}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


_REASONS: Final = {
    400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required", 413: "Content Too Large",
    431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
}  # fmt: skip


def certificate_text(certificate: Mapping[str, Any] | None) -> str:
    """A client's verified certificate as a header's value, "" for none: its subject is all that anyone asks."""
    if not certificate:
        return ""
    subject = {"subject": certificate.get("subject", ())}
    return base64.b64encode(json.dumps(subject).encode()).decode("ascii")


def certificate_of(text: str) -> Mapping[str, Any] | None:
    """The certificate that a front has written; None for none, or for what no front writes."""
    try:
        read = json.loads(base64.b64decode(text, validate=True)) if text else None
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _length_of(lower: bytes) -> int | None:
    """The length that a head tells, 0 where it tells none; None where that is not clear."""
    count = lower.count(b"\r\ncontent-length")
    if count == 0:
        return 0
    found = _LENGTH.search(lower)
    return None if count > 1 or found is None else int(found[1])


def _seconds(path: bytes) -> float:
    found = _TIMEOUT.search(path)
    return _patience(b"" if found is None else found[1])


@lru_cache(maxsize=64)  # of all that a request costs here, to read this would be a quarter
def _patience(said: bytes) -> float:
    try:
        given = parse_duration(said.decode()) / NANOSECONDS if said else LONGEST
    except ValueError:
        given = LONGEST
    return min(max(given, 0.0), LONGEST) * (1 - _MARGIN)

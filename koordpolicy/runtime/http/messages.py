"""Requests and answers of HTTP/1.1 between bytes and values, where no library stands between."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, unquote

from koordpolicy.runtime.front.messages import RequestHead
from koordpolicy.runtime.http.routing import Response

_USUAL: Final = 200
"""Bytes of a target that is kept once it is read: API servers always send the same few."""
_LAST: Final = "Connection: close\r\n"


def target_of(head: RequestHead) -> tuple[str, Mapping[str, str]]:
    """The path of a request, and what its query says; of what is said twice, the first holds."""
    return _known_target(head.path) if len(head.path) < _USUAL else _target(head.path)


class Headers(Mapping[str, str]):
    """Headers by name in lower case, the first of a name; read when first asked for, which webhooks never do.

    What a front says of itself is kept apart from what clients say.
    """

    __slots__ = ("_head", "_read")

    def __init__(self, head: RequestHead) -> None:
        self._head = head
        self._read: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __contains__(self, name: object) -> bool:
        # Where its letters stand nowhere, nothing need be read.
        return isinstance(name, str) and (
            (name in self._head.told or name.encode() in self._head.text.lower()) and name in self._all()
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        if self._read is None:
            lines = self._head.text.decode("latin-1").split("\r\n")
            found: dict[str, str] = {}
            for line in lines[1:-2]:
                name, _, value = line.partition(":")
                found.setdefault(name.lower(), value.strip())
            found.update(self._head.told)
            self._read = found
        return self._read


def written(response: Response, *, last: bool, body: bool = True) -> bytes:
    """An answer as it is sent; the `last` one of a connection says so."""
    if not (last or response.headers):
        head = _usual_head(response.status, response.content_type) % len(response.body)
        return head + response.body if body else head
    more = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    text = (
        f"HTTP/1.1 {response.status} {_phrase(response.status)}\r\nContent-Type: {response.content_type}\r\n{more}"
        f"Content-Length: {len(response.body)}\r\n{_LAST if last else ''}\r\n"
    )
    return text.encode("latin-1") + response.body if body else text.encode("latin-1")


def _target(said: bytes) -> tuple[str, Mapping[str, str]]:
    path, _, query = said.decode("ascii").partition("?")
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        found.setdefault(name, value)
    return unquote(path), found


_known_target: Final = lru_cache(maxsize=64)(_target)


@lru_cache(maxsize=64)
def _usual_head(status: int, content_type: str) -> bytes:
    said = f"HTTP/1.1 {status} {_phrase(status)}\r\nContent-Type: {content_type}\r\n".replace("%", "%%")
    return said.encode("latin-1") + b"Content-Length: %d\r\n\r\n"


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase

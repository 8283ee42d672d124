"""From what the server answers when it refuses, to the errors of the port."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import msgspec

from koordpolicy.kube.errors import (
    AlreadyExists,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Rejected,
    TooManyRequests,
    Unreachable,
)

_SHOWN: Final = 500
"""Characters of a body that is no Status, in a message."""

_TOO_NEW: Final = "ResourceVersionTooLarge"
"""The cause by which a server says that it has not come as far as the version asked for."""


class _Cause(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None
    retryAfterSeconds: float | None = None  # noqa: N815  the wire's name


class Status(msgspec.Struct):
    """The parts of a Kubernetes Status that we act on."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What is wrong where."""
        found = self.details.causes if self.details is not None else None
        return tuple(Cause(cause.field or "", cause.message or "") for cause in found or ())

    def names(self, reason: str) -> bool:
        """Whether one of the causes is of this reason."""
        found = self.details.causes if self.details is not None else None
        return any(cause.reason == reason for cause in found or ())


_DECODER: Final = msgspec.json.Decoder(Status)


class _Frame(msgspec.Struct):
    object: Status


_FRAMES: Final = msgspec.json.Decoder(_Frame)


def refusal(code: int, body: bytes, retry_after: str = "") -> KubeError:
    """The error of an answer: its HTTP status, its body, and its `Retry-After` header."""
    try:
        status = _DECODER.decode(body)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ):  # a proxy on the way, or a server in trouble
        text = body[:_SHOWN].decode(errors="replace").strip()
        status = Status(message=text or f"HTTP status {code}")
    return _error(code, status, _seconds(retry_after))


def failed_watch(line: bytes) -> KubeError:
    """The error that a watch reports with an event of type ERROR."""
    try:
        status = _FRAMES.decode(line).object
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Unreachable(f"the watch reports an error that cannot be read: {error}")
    return _error(status.code or 500, status, 0.0)


_PLAIN: Final = MappingProxyType[int, Callable[..., KubeError]](
    {404: NotFound, 410: Gone, 401: Forbidden, 403: Forbidden}
)


def _error(code: int, status: Status, retry_after: float) -> KubeError:
    message = status.message or status.reason or f"HTTP status {code}"
    told: dict[str, Any] = {"code": code, "reason": status.reason or None}
    if code in _PLAIN:
        return _PLAIN[code](message, **told)
    if code == 409:
        return AlreadyExists(message) if status.reason == AlreadyExists.REASON else Conflict(message, **told)
    if code == 422:
        return Invalid(message, status.causes)
    if code == 429:
        details = status.details.retryAfterSeconds if status.details is not None else None
        return TooManyRequests(message, retry_after=retry_after or details or 0.0)
    if status.names(_TOO_NEW):
        return Gone(message)
    if 400 <= code < 500 and code != 408:
        return Rejected(message, **told)
    return Unreachable(message, **told)


def _seconds(retry_after: str) -> float:
    """The header as the API server writes it: whole seconds. Dates, which proxies may send, count as none."""
    return float(retry_after) if retry_after.isdecimal() and len(retry_after) < 10 else 0.0

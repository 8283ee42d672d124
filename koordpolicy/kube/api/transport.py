"""Sends requests: bounded in number and time, repeated where that is safe, counted, and refused in our words."""

import asyncio
import io
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import aiohttp
from yarl import URL

from koordpolicy.kube.api.access import Access
from koordpolicy.kube.api.credentials import Credentials
from koordpolicy.kube.api.statuses import refusal
from koordpolicy.kube.api.wires import NotConnected, NotTrusted, Wires
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, Rejected, TooManyRequests, Unreachable

Observer: TypeAlias = Callable[[str, str, int, float], None]
"""Told of each answer: verb, resource, HTTP status (0: none came), seconds. For watches, until they began."""

_LONGEST_WAIT: Final = 30.0
"""Seconds. A server that asks for more patience than this gets it from our caller, who knows what it waits for."""

_LARGE: Final = 2**19
"""Bytes of a body that are not sent in one go."""

_WARNINGS: Final = 256
"""Different warnings that are remembered, so that each is logged once."""

_WARNING: Final = re.compile(r'(?:^|,)\s*299\s+\S+\s+"((?:[^"\\]|\\.)*)"')
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How much at once, and for how long.

    `requests` and `watches` are numbers of simultaneous ones. `connect`, `request` and `list` are seconds for
    finding the server, for one request, and for one page of a list. `attempts` is how often a request is
    sent at most. Watches last between `watch` seconds and twice as many.
    """

    requests: int = 64
    watches: int = 256
    connect: float = 10.0
    request: float = 30.0
    list: float = 60.0
    watch: float = 300.0
    attempts: int = 4


class ApiRequest(NamedTuple):
    """One request. `target` is path and query; `repeatable` says that sending it twice does no more than once.

    `patient` allows to wait and ask again when the server wants that.
    """

    verb: str
    resource: str
    method: str
    target: str
    body: bytes | None = None
    content_type: str = "application/json"
    repeatable: bool = False
    patient: bool = True


_GOOD: Final = range(200, 300)
# uvloop raises a bare RuntimeError where a connect that was cancelled left its file descriptor behind.
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError, RuntimeError)


class _Unsent(Unreachable):
    """The server was not reached: nothing happened, and any request may be repeated."""


class _Untrusted(_Unsent):
    """The server's certificate or ours was not accepted; perhaps they changed."""


class Transport:
    """The requests of one client. `backoff` says how long to wait before repeating."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        wires: Wires,
        credentials: Credentials,
        limits: ClientLimits,
        backoff: Backoff,
        observer: Observer | None,
    ) -> None:
        self._session = session
        self._wires = wires
        self._credentials = credentials
        self._limits = limits
        self._backoff = backoff
        self._observe = observer or _nobody
        self._clock = asyncio.get_running_loop().time
        self._room = asyncio.Semaphore(limits.requests)
        self._watch_room = asyncio.Semaphore(limits.watches)
        self._timing = aiohttp.ClientTimeout(total=limits.request, sock_connect=limits.connect)
        self._list_timing = aiohttp.ClientTimeout(total=limits.list, sock_connect=limits.connect)
        self._warned: set[str] = set()

    async def request(self, call: ApiRequest) -> bytes:
        """The body of the answer. Raises the errors of the port."""
        failures = 0
        renewed = False
        while True:
            access = self._credentials.current()
            try:
                return await self._attempt(call, access)
            except KubeError as error:
                failures += 1
                if not renewed and _is_about_credentials(error):
                    renewed = True
                    if await self._credentials.replace(access):
                        continue
                wait = self._wait(call, error, failures)
                if wait is None:
                    raise
            await self._backoff.sleep(wait)

    @asynccontextmanager
    async def stream(self, call: ApiRequest, seconds: float) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of an answer as it comes, for so many seconds at most. Not repeated."""
        async with self._watch_room:
            access = self._credentials.current()
            try:
                answer = await self._begin(call, access, seconds)
            except KubeError as error:
                if not _is_about_credentials(error) or not await self._credentials.replace(access):
                    raise
                answer = await self._begin(call, self._credentials.current(), seconds)
            try:
                yield answer.content
            finally:
                # The rest of a stream is never worth reading, nor is its end worth a handshake.
                transport = answer.connection.transport if answer.connection is not None else None
                answer.close()
                if transport is not None:
                    transport.abort()

    def _wait(self, call: ApiRequest, error: KubeError, failures: int) -> float | None:
        """Seconds until this call is worth repeating; None when it is not."""
        if failures >= self._limits.attempts or isinstance(error, _Untrusted):
            return None
        if isinstance(error, TooManyRequests):
            if not call.patient or not 0 < error.retry_after <= _LONGEST_WAIT:
                return None
            return max(error.retry_after, self._backoff.delay(failures))
        if isinstance(error, _Unsent) or (call.repeatable and isinstance(error, Unreachable)):
            return self._backoff.delay(failures)
        return None

    async def _attempt(self, call: ApiRequest, access: Access) -> bytes:
        """The body of the answer to a request that is sent once."""
        await self._room.acquire()
        began, code = self._clock(), 0
        retry_after = ""
        try:
            place = None if self._is_large(call) else self._wires.place(access)
            if place is None:
                timing = self._list_timing if call.verb == "list" else self._timing
                answer = await self._send(call, access, timing)
                code, retry_after = answer.status, answer.headers.get("Retry-After", "")
                body = await answer.read()
            else:
                found = await self._wires.request(
                    place, call.method, call.target, call.body, call.content_type, self._limits.request
                )
                code, body = found.status, found.body
                if code not in _GOOD:
                    retry_after = found.first("retry-after")
                self._warn(call, found.all("warning"))
        except _BROKEN as error:
            raise _trouble(call, access, error) from error
        finally:
            self._room.release()
            self._observe(call.verb, call.resource, code, self._clock() - began)
        if code not in _GOOD:
            raise refusal(code, body, retry_after)
        return body

    def _is_large(self, call: ApiRequest) -> bool:
        """Whether a request or its answer is more than goes through in one piece."""
        return call.verb == "list" or (call.body is not None and len(call.body) > _LARGE)

    async def _begin(self, call: ApiRequest, access: Access, seconds: float) -> aiohttp.ClientResponse:
        """A good answer whose body is still to come."""
        timing = aiohttp.ClientTimeout(total=seconds, sock_connect=self._limits.connect)
        began, code = self._clock(), 0
        try:
            async with asyncio.timeout(self._limits.request):
                answer = await self._send(call, access, timing)
                code = answer.status
                if code not in _GOOD:
                    body = await answer.read()
                    raise refusal(code, body, answer.headers.get("Retry-After", ""))
        except _BROKEN as error:
            raise _trouble(call, access, error) from error
        finally:
            self._observe(call.verb, call.resource, code, self._clock() - began)
        return answer

    async def _send(
        self, call: ApiRequest, access: Access, timing: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session.closed:
            raise Unreachable("this client is closed")
        headers: dict[str, str] = {}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        if access.authorization:
            headers["Authorization"] = access.authorization
        answer = await self._session.request(
            call.method,
            URL(access.server + call.target, encoded=True),
            data=_payload(call.body),
            headers=headers,
            timeout=timing,
            ssl=access.tls if access.tls is not None else True,
            server_hostname=access.server_name or None,
            proxy=access.proxy or None,
            allow_redirects=False,
        )
        self._warn(call, answer.headers.getall("Warning", []))
        return answer

    def _warn(self, call: ApiRequest, headers: list[str]) -> None:
        for header in headers:
            for text in _WARNING.findall(header):
                if text not in self._warned and len(self._warned) < _WARNINGS:
                    self._warned.add(text)
                    _log.warning("the server warns about %s of %s: %s", call.verb, call.resource, text)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """What is large goes out in pieces, so that others get their turn."""
    return io.BytesIO(body) if body is not None and len(body) > _LARGE else body


def _is_about_credentials(error: KubeError) -> bool:
    return error.code == 401 or isinstance(error, _Untrusted)


def _trouble(call: ApiRequest, access: Access, error: Exception) -> KubeError:
    """The error of a request that got no answer."""
    what = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientSSLError | NotTrusted):
        return _Untrusted(f"{access.server} and we do not trust each other: {what}")
    if isinstance(error, aiohttp.InvalidURL):
        return Rejected(f"`{access.server}{call.target}` is no address")
    if isinstance(
        error,
        NotConnected
        | aiohttp.ClientConnectorError
        | aiohttp.ConnectionTimeoutError
        | aiohttp.ClientHttpProxyError,
    ):
        if isinstance(error, aiohttp.ClientConnectorError):  # its own text shows Python's object for TLS
            what = error.os_error.strerror or str(error.os_error) or type(error).__name__
        return _Unsent(f"{access.server} cannot be reached: {what}")
    if isinstance(error, aiohttp.ClientOSError) and isinstance(
        error.__cause__, aiohttp.ClientConnectionResetError
    ):
        # An idle connection was closed at the other end, as we notice while writing: nothing left the house.
        return _Unsent(f"{access.server} closed the connection: {what}")
    why = " in time" if isinstance(error, TimeoutError) else f": {what}"
    return Unreachable(f"{access.server} did not answer {call.verb} of {call.resource}{why}")


def _nobody(verb: str, resource: str, code: int, seconds: float) -> None:
    """Nobody counts."""

"""One small HTTP server for whatever a process shows or answers: health, metrics, status, and routes of its own.

Handlers are plain functions of values: nobody else needs to know the HTTP library. What comes from outside passes here
before any of them sees it: who asks (`authentication`), how much and for how long (`connections`, `bodies`). A route
says what it lets its callers do; without credentials only reading is served.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, Self

from aiohttp import web

from koordpolicy.runtime.front.messages import CERTIFICATE, certificate_of
from koordpolicy.runtime.http.authentication import Authenticator, Protection
from koordpolicy.runtime.http.bodies import BodyProblem, Room, read_body
from koordpolicy.runtime.http.certificates import Certificates
from koordpolicy.runtime.http.connections import Connections, HttpConnection, ServerLimits
from koordpolicy.runtime.listening import UNIX, listen
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.runtime.tls import Tls

LOG: Final = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"

_USUAL: Final = ServerLimits()
_KINDS: Final = 200
"""Kinds of failures that are told apart in the log; the metric counts all of them."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked. Header names are in lower case; what is not ASCII in values is as Latin-1 reads it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered. The `last` one of a connection ends it, so that the client looks for another server."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    last: bool = False

    @classmethod
    def text(cls, text: str, status: int = 200) -> "Response":
        """A few words."""
        return cls(status, text.encode("utf-8", "backslashreplace"))


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """What answers requests of one method to one path, and who may ask."""

    method: str
    path: str
    handler: Handler
    protection: Protection = Protection.WRITE


class HttpServer:
    """Serves routes on one address while its `async with` block runs. Port 0 takes a free one.

    `authenticator` knows who may ask; without one, reading is for everyone and writing for nobody. Once `closing` is set,
    each answer is the last of its connection, so that clients look for another server. A host `unix:PATH` is a socket that fronts
    alone can reach: what they say of a client's certificate is so.
    """

    def __init__(
        self,
        host: str,
        port: int,
        routes: Sequence[Route],
        metrics: Metrics | None = None,
        *,
        tls: Tls | None = None,
        limits: ServerLimits = _USUAL,
        authenticator: Authenticator | None = None,
    ) -> None:
        self.port = port
        self.closing = False
        self._host = host
        self._fronted = host.startswith(UNIX)
        self._routes = {(route.method, route.path): route for route in routes}
        self._paths = {route.path for route in routes}
        self._metrics = metrics
        self._limits = limits
        self._tls = tls
        self._authenticator = authenticator or Authenticator()
        self._room = Room(limits.bodies)
        self._failures: set[tuple[object, ...]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            certificates = None
            if self._tls is not None:
                certificates = await stack.enter_async_context(Certificates(self._tls, self._limits.reread))
            sockets = listen(self._host, self.port, self._limits.backlog)
            for one in sockets:
                stack.callback(one.close)
            connections = Connections(web.Server(self._answer), self._limits, certificates, self)
            await stack.enter_async_context(connections.accepting(sockets))
            if not self._fronted:
                self.port = int(sockets[0].getsockname()[1])
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, HttpConnection)
        connection.asks()
        try:
            return await self._routed(request, connection)
        finally:
            connection.waits()

    async def _routed(self, request: web.BaseRequest, connection: HttpConnection) -> web.StreamResponse:
        path = request.path
        route = self._routes.get((request.method, path))
        if route is None and request.method == "HEAD":
            route = self._routes.get(("GET", path))
        known = path if path in self._paths else "other"
        if route is None:
            return self._said(known, Response.text("not found\n", 404) if known == "other" else _NOT_SO)
        try:
            response = await self._refused(request, route, connection)
            if response is None:
                response = await self._handled(request, route, connection)
        except BodyProblem as problem:
            response = Response(problem.status, f"{problem}\n".encode(), headers=problem.headers)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001  # logged once a kind, and counted
            self.failed(known, error)
            response = Response.text("internal error\n", 500)
        return self._said(known, response)

    async def _refused(
        self, request: web.BaseRequest, route: Route, connection: HttpConnection
    ) -> Response | None:
        """Why the caller may not ask; looked at before a byte of the body is taken."""
        authenticator = self._authenticator
        if authenticator.is_open(route.protection):
            return None
        refused = await authenticator.refusal(
            route.protection,
            route.method,
            route.path,
            request.headers.get("Authorization", ""),
            certificate_of(request.headers.get(CERTIFICATE, "")) if self._fronted else connection.certificate,
        )
        if refused is None:
            return None
        # RFC 9110 wants a challenge with each 401; only that of tokens has a name.
        headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
        return Response(refused.status, f"{refused.message}\n".encode(), headers=headers)

    async def _handled(self, request: web.BaseRequest, route: Route, connection: HttpConnection) -> Response:
        """The answer of a route's handler. Raises `BodyProblem`."""
        body = b""
        try:
            if request.method in _WITH_BODY:
                body = await read_body(request, self._limits.body, self._limits.body_seconds, self._room)
            headers = {name.lower(): _plain(value) for name, value in request.headers.items()}
            asked = Request(request.method, request.path, dict(request.query), headers, body)
            connection.works()
            async with asyncio.timeout(self._limits.seconds):
                return await route.handler(asked)
        except TimeoutError:
            return Response.text("took too long\n", 504)
        finally:
            self._room.give_back(len(body))

    def _said(self, path: str, response: Response) -> web.Response:
        if self._metrics is not None:
            self._metrics.add("koordpolicy_http_requests_total", path=path, code=str(response.status))
        answer = web.Response(
            status=response.status,
            body=response.body,
            headers={**response.headers, "Content-Type": response.content_type},
        )
        if self.closing or response.last:
            answer.force_close()
        return answer

    def failed(self, path: str, error: BaseException) -> None:
        """Count what nobody foresaw, and log the first of a kind: whoever asks must not fill the log."""
        name, trace = type(error).__name__, error.__traceback__
        if self._metrics is not None:
            self._metrics.add("koordpolicy_http_failures_total", path=path, error=name)
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        kind = (path, name, place)
        if kind in self._failures or len(self._failures) >= _KINDS:
            return
        self._failures.add(kind)
        LOG.error("%s failed; further failures of this kind are only counted", path, exc_info=error)

    def closed(self, reason: str) -> None:
        """Count a connection that was ended by us."""
        if self._metrics is not None:
            self._metrics.add("koordpolicy_http_connections_closed_total", reason=reason)


_NOT_SO: Final = Response.text("method not allowed\n", 405)


def _plain(value: str) -> str:
    """A header's value in characters that every encoding of text can write: bytes come as half surrogates."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")

"""One small HTTP server for whatever a process shows or answers: health, metrics, status, and routes of its own.

Handlers are plain functions of values: nobody else needs to know the HTTP library. What comes from outside passes here
before any of them sees it: who asks (`authentication`), how much and for how long (`connections`, `bodies`). A route
says what it lets its callers do; without credentials only reading is served.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Self

from aiohttp import web

from koordpolicy.runtime.front.messages import CERTIFICATE, certificate_of
from koordpolicy.runtime.http.authentication import Authenticator
from koordpolicy.runtime.http.bodies import BodyProblem, Room, is_packed, read_body, unpacked
from koordpolicy.runtime.http.certificates import Certificates
from koordpolicy.runtime.http.connections import Connections, HttpConnection
from koordpolicy.runtime.http.fronted import FrontConnections
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.routing import Request, Response, Route, Routes
from koordpolicy.runtime.listening import UNIX, listen
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.runtime.tls import Tls

LOG: Final = logging.getLogger(__name__)

_USUAL: Final = ServerLimits()
_KINDS: Final = 200
"""Kinds of failures that are told apart in the log; the metric counts all of them."""
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_CERTIFICATE: Final = CERTIFICATE.lower()


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
        self._routes = Routes(tuple(routes))
        self._metrics = metrics
        self._counting: dict[tuple[str, int], Callable[[], None]] = {}
        """What counts answers, by path and status."""
        self.limits = limits
        self._tls = tls
        self._authenticator = authenticator or Authenticator()
        self.room = Room(limits.bodies)
        self._failures: set[tuple[object, ...]] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            sockets = listen(self._host, self.port, self.limits.backlog)
            for one in sockets:
                stack.callback(one.close)
            if self._fronted:
                await stack.enter_async_context(FrontConnections(self).accepting(sockets))
            else:
                certificates = None
                if self._tls is not None:
                    renewed = Certificates(self._tls, self.limits.reread)
                    certificates = await stack.enter_async_context(renewed)
                connections = Connections(web.Server(self._answer), self.limits, certificates, self)
                await stack.enter_async_context(connections.accepting(sockets))
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
        route = self._routes.find(request.method, path)
        if isinstance(route, Response):
            return self._said(path, route)
        try:
            response = await self._refused(
                route, request.headers.get("Authorization", ""), connection.certificate
            )
            if response is None:
                response = await self._handled(request, route, connection)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001  # logged once a kind, and counted
            response = self._failure(path, error)
        return self._said(path, response)

    async def _refused(
        self, route: Route, authorization: str, certificate: Mapping[str, Any] | None
    ) -> Response | None:
        """Why the caller may not ask; looked at before a byte of the body is taken."""
        authenticator = self._authenticator
        if authenticator.is_open(route.protection):
            return None
        refused = await authenticator.refusal(
            route.protection, route.method, route.path, authorization, certificate
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
                body = await read_body(request, self.limits.body, self.limits.body_seconds, self.room)
            headers = {name.lower(): _plain(value) for name, value in request.headers.items()}
            asked = Request(request.method, request.path, dict(request.query), headers, body)
            connection.works()
            async with asyncio.timeout(self.limits.seconds):
                return await route.answer(asked)
        except TimeoutError:
            return _TOO_LONG
        finally:
            self.room.give_back(len(body))

    # --- what fronts bring ------------------------------------------------------------------------

    def answer_front(self, request: Request) -> Response | Awaitable[Response]:
        """The answer to a whole request of a front: at once, where its handler has one and nobody else is asked."""
        route = self._routes.find(request.method, request.path)
        if isinstance(route, Response):
            return self._counted(request.path, route)
        if not self._authenticator.is_open(route.protection) or "content-encoding" in request.headers:
            return self._looked_at(route, request)
        return self.answer_open(route, request)

    # --- requests that are read without a library, and whose senders nobody needs to know ---------

    def open_route(self, method: str, path: str) -> Route | None:
        """The route of a request to which anyone may send one; None for all others."""
        route = self._routes.find(method, path)
        if isinstance(route, Response) or not self._authenticator.is_open(route.protection):
            return None
        return route

    def answer_problem(self, path: str, problem: BodyProblem) -> Response:
        """The answer to a body that is not taken."""
        return self._counted(path, self._failure(path, problem))

    def answer_open(self, route: Route, request: Request) -> Response | Awaitable[Response]:
        """The answer to a whole request: at once, where its handler has one; nothing is raised."""
        try:
            answer = route.handler(request)
        except Exception as error:  # noqa: BLE001  # logged once a kind, and counted
            return self._counted(request.path, self._failure(request.path, error))
        if isinstance(answer, Response):
            return self._counted(request.path, answer)
        return self._waited(request.path, answer)

    async def _looked_at(self, route: Route, request: Request) -> Response:
        """The answer to a request whose caller or body is looked at before."""
        headers = request.headers
        try:
            certificate = certificate_of(headers.get(_CERTIFICATE, ""))
            refused = await self._refused(route, headers.get("authorization", ""), certificate)
        except Exception as error:  # noqa: BLE001  # logged once a kind, and counted
            refused = self._failure(request.path, error)
        if refused is not None:
            return self._counted(request.path, refused)
        return await self._waited(request.path, self._unpacked(route, request))

    async def _unpacked(self, route: Route, request: Request) -> Response:
        if not is_packed(request.headers.get("content-encoding", "")):
            return await route.answer(request)
        body = await unpacked(request.body, self.limits.body)
        self.room.take(len(body))
        try:
            return await route.answer(
                Request(request.method, request.path, request.query, request.headers, body)
            )
        finally:
            self.room.give_back(len(body))

    async def _waited(self, path: str, answer: Awaitable[Response]) -> Response:
        try:
            async with asyncio.timeout(self.limits.seconds):
                response = await answer
        except TimeoutError:
            response = _TOO_LONG
        except Exception as error:  # noqa: BLE001  # logged once a kind, and counted
            response = self._failure(path, error)
        return self._counted(path, response)

    # --- answers ----------------------------------------------------------------------------------

    def _said(self, path: str, response: Response) -> web.Response:
        self._counted(path, response)
        answer = web.Response(
            status=response.status,
            body=response.body,
            headers={**response.headers, "Content-Type": response.content_type},
        )
        if self.is_last(response):
            answer.force_close()
        return answer

    def is_last(self, response: Response) -> bool:
        """Whether an answer ends its connection."""
        return self.closing or response.last

    def _counted(self, path: str, response: Response) -> Response:
        if self._metrics is not None:
            named = self._routes.named(path), response.status
            count = self._counting.get(named)
            if count is None:
                count = self._counting[named] = self._metrics.adder(
                    "koordpolicy_http_requests_total", path=named[0], code=str(named[1])
                )
            count()
        return response

    def _failure(self, path: str, error: Exception) -> Response:
        """The answer where something went wrong, told to whoever keeps the server if nobody foresaw it."""
        if isinstance(error, BodyProblem):
            return Response(error.status, f"{error}\n".encode(), headers=error.headers)
        self.failed(self._routes.named(path), error)
        return Response.text("internal error\n", 500)

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


_TOO_LONG: Final = Response.text("took too long\n", 504)


def _plain(value: str) -> str:
    """A header's value in characters that every encoding of text can write: bytes come as half surrogates."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")

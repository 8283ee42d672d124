"""One small HTTP server for whatever a process shows or answers: health, metrics, status, and routes of its own.

Handlers are plain functions of values: nobody else needs to know the HTTP library.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from aiohttp import web

from koordpolicy.runtime.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, text: str, status: int = 200) -> "Response":
        """A few words."""
        return cls(status, text.encode())


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """What answers requests of one method to one path."""

    method: str
    path: str
    handler: Handler


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key as PEM files; they are read again when they change. `clients` verifies clients by a CA."""

    certificate: Path
    key: Path
    clients: Path | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take: bytes of its body, seconds until it is answered. `backlog` may wait to connect."""

    body: int = 4_000_000
    seconds: float = 30.0
    backlog: int = 1024
    reread: float = 10.0
    """Seconds between looks at the certificate's files."""


class Server:
    """Serves routes on one address while its `async with` block runs. Port 0 takes a free one."""

    def __init__(
        self,
        host: str,
        port: int,
        routes: Sequence[Route],
        metrics: Metrics | None = None,
        *,
        tls: Tls | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self.port = port
        self._host = host
        self._routes = {(route.method, route.path): route.handler for route in routes}
        self._paths = {route.path for route in routes}
        self._metrics = metrics
        self._limits = limits
        self._tls = tls
        self._runner: web.ServerRunner | None = None
        self._reread: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        context = None
        if self._tls is not None:
            context = _context(self._tls)
            self._reread = asyncio.create_task(self._follow(self._tls, context), name="certificate")
        server = web.Server(self._answer, access_log=None, keepalive_timeout=75.0)
        self._runner = web.ServerRunner(server, shutdown_timeout=self._limits.seconds)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self._host, self.port, ssl_context=context, backlog=self._limits.backlog
        )
        try:
            await site.start()
        except OSError:
            await self.__aexit__()
            raise
        addresses = self._runner.addresses
        self.port = int(addresses[0][1]) if addresses else self.port
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reread is not None:
            self._reread.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        handler = self._routes.get((request.method, path))
        known = path if path in self._paths else "other"
        if handler is None and request.method == "HEAD":
            handler = self._routes.get(("GET", path))
        if handler is None:
            return self._said(known, Response.text("not found\n", 404) if known == "other" else _NOT_SO)
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await _body(request, self._limits.body)
                if body is None:
                    return self._said(known, Response.text("the body is too large\n", 413))
                headers = {name.lower(): value for name, value in request.headers.items()}
                asked = Request(request.method, path, dict(request.query), headers, body)
                return self._said(known, await handler(asked))
        except TimeoutError:
            return self._said(known, Response.text("took too long\n", 504))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:
            LOG.exception("%s %s failed", request.method, path)
            return self._said(known, Response.text("internal error\n", 500))

    def _said(self, path: str, response: Response) -> web.Response:
        if self._metrics is not None:
            self._metrics.add("koordpolicy_http_requests_total", path=path, code=str(response.status))
        return web.Response(
            status=response.status,
            body=response.body,
            headers={**response.headers, "Content-Type": response.content_type},
        )

    async def _follow(self, tls: Tls, context: ssl.SSLContext) -> None:
        """Take renewed certificates for new connections; a half-written pair waits for the next look."""
        seen = _stamp(tls)
        while True:
            await asyncio.sleep(self._limits.reread)
            now = _stamp(tls)
            if now == seen:
                continue
            try:
                _context(tls)  # certificate and key must fit each other before the live context takes them
                context.load_cert_chain(tls.certificate, tls.key)
            except (OSError, ssl.SSLError) as error:
                LOG.warning("the renewed certificate is of no use yet: %s", error)
                continue
            seen = now
            LOG.info("the certificate was renewed")


_NOT_SO: Final = Response.text("method not allowed\n", 405)


async def _body(request: web.BaseRequest, most: int) -> bytes | None:
    """The whole body, None when it is larger than permitted."""
    if request.content_length is not None and request.content_length > most:
        return None
    parts = bytearray()
    async for part in request.content.iter_any():
        parts += part
        if len(parts) > most:
            return None
    return bytes(parts)


def _context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key)
    if tls.clients is not None:
        context.load_verify_locations(tls.clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _stamp(tls: Tls) -> tuple[Any, ...]:
    """What changes when the files do, through links as well."""
    stamp: list[Any] = []
    for path in (tls.certificate, tls.key):
        try:
            stat = path.stat()
            stamp.append((stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamp.append(None)
    return tuple(stamp)

"""A server for as long as a process needs it; an address that cannot be served, or not safely, is a reason not to start.

Beyond this host only who shows credentials is answered, and what a caller can change or have us work for needs them on
this host, too. Less than that has to be said by a flag, so that nobody opens a cluster by leaving one out.
"""

import ipaddress
import logging
import socket
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.runtime.http.authentication import Authentication, Authenticator, Protection, Reviews
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.http.routing import Request, Response, Route
from koordpolicy.runtime.http.server import HttpServer
from koordpolicy.runtime.listening import UNIX
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.runtime.process import CannotStart
from koordpolicy.runtime.tls import Tls

LOG: Final = logging.getLogger(__name__)

_USUAL: Final = ServerLimits()
_NONE: Final = Authentication()
CREDENTIALS: Final = "--tls-client-ca-file, --bearer-token-file or --delegated-auth"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where something is served, and to whom.

    `flag` is what the operator named the address by, `remedies` the flags by which callers could show who they are. A
    host `unix:PATH` is a socket for a front; with `front_clients` that has a CA by which it looks at clients' certificates.
    """

    flag: str
    host: str
    port: int
    tls: Tls | None = None
    authentication: Authentication = _NONE
    remedies: str = CREDENTIALS
    front_clients: bool = False

    @property
    def address(self) -> str:
        """As a flag says it."""
        return self.host if self.host.startswith(UNIX) else f"{self.host}:{self.port}"

    @property
    def takes_credentials(self) -> bool:
        """Whether callers can show who they are."""
        return self.takes_certificates or self.authentication.takes_tokens

    @property
    def takes_certificates(self) -> bool:
        """Whether they can by a certificate."""
        return self.front_clients or (self.tls is not None and self.tls.clients is not None)


async def serve(
    stack: AsyncExitStack,
    endpoint: Endpoint,
    routes: Sequence[Route],
    metrics: Metrics,
    *,
    reviews: Reviews | None = None,
    limits: ServerLimits = _USUAL,
) -> HttpServer:
    """Serve routes until the stack unwinds, and at `/`, where none of them stands, a page that lists them. Raises `CannotStart`."""
    host, port, tls = endpoint.host, endpoint.port, endpoint.tls
    try:
        settings = effective(endpoint, {route.protection for route in routes})
        if settings.delegated and reviews is None:
            raise CannotStart("--delegated-auth needs a cluster to ask")
        authenticator = Authenticator(
            settings, client_certificates=endpoint.takes_certificates, reviews=reviews
        )
        index = () if any(one.path == "/" for one in routes) else (index_page(routes, authenticator),)
        server = HttpServer(
            host, port, (*routes, *index), metrics, tls=tls, limits=limits, authenticator=authenticator
        )
        await stack.enter_async_context(server)
    except ssl.SSLError as error:
        files = " and ".join(map(str, () if tls is None else tls.files))
        raise CannotStart(f"{files} cannot be used to serve by TLS: {error.reason or error}") from None
    except OSError as error:
        if error.filename is not None:
            raise CannotStart(f"`{error.filename}` cannot be read: {error.strerror}") from None
        raise CannotStart(f"{endpoint.address} cannot be served: {error.strerror}") from None
    for protection in Protection:
        paths = [route.path for route in routes if route.protection is protection]
        if paths:
            who = authenticator.who(protection)
            where = replace(endpoint, port=server.port).address
            LOG.info("%s serves %s to %s", where, ", ".join(paths), who)
    return server


def effective(endpoint: Endpoint, protections: set[Protection]) -> Authentication:
    """Who may ask at an address, all told. Raises `CannotStart` for what would be open by mistake, OSError."""
    flag, settings = endpoint.flag, endpoint.authentication
    where = f"{flag} {endpoint.address}"
    here = is_loopback(endpoint.host)
    credentials = endpoint.takes_credentials
    if not here and settings.takes_tokens and endpoint.tls is None:
        raise CannotStart(
            f"{where} would take tokens in clear text from other hosts: give --tls-cert-file and"
            " --tls-private-key-file, or a loopback address such as 127.0.0.1"
        )
    if Protection.WRITE in protections and not credentials:
        if not here:
            raise CannotStart(
                f"{where} would let anyone on the network act with this process's rights: give {endpoint.remedies},"
                " or a loopback address such as 127.0.0.1"
            )
        if not settings.anonymous_writes:
            raise CannotStart(
                f"{where} would let every process on this host act with this process's rights: give"
                f" {endpoint.remedies}, or {flag}-anonymous-auth if all of them may"
            )
    if Protection.READ in protections and not (here or credentials or settings.anonymous_reads):
        raise CannotStart(
            f"{where} would tell anyone on the network which policies and objects there are: give {endpoint.remedies},"
            f" or a loopback address such as 127.0.0.1, or {flag}-anonymous-auth if everyone may read that"
        )
    return replace(
        settings,
        anonymous_reads=settings.anonymous_reads or (here and not credentials),
        anonymous_writes=settings.anonymous_writes and here and not credentials,
    )


def is_loopback(host: str) -> bool:
    """Whether no other host can reach an address, by number or by name. Raises OSError for a name that is none."""
    if not host:
        return False
    if host.startswith(UNIX):
        return True
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return all(ipaddress.ip_address(str(one[4][0]).partition("%")[0]).is_loopback for one in found)


def index_page(routes: Sequence[Route], authenticator: Authenticator) -> Route:
    """What an address says of itself at `/`: each path, and who may ask it."""
    shown = sorted((route.path, route.method, authenticator.who(route.protection)) for route in routes)
    width = max((len(path) for path, _, _ in shown), default=0)
    lines = [f"{method:4} {path:{width}}  for {who}\n" for path, method, who in shown]
    page = Response.text("".join(lines))

    async def index(_: Request) -> Response:
        return page

    return Route("GET", "/", index, Protection.OPEN)

"""A server for as long as a process needs it; an address that cannot be served is a reason not to start."""

import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from koordpolicy.runtime.http import Limits, Route, Server, Tls
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import CannotStart

_USUAL: Final = Limits()


async def serve(
    stack: AsyncExitStack,
    address: tuple[str, int],
    routes: Sequence[Route],
    metrics: Metrics,
    *,
    tls: Tls | None = None,
    limits: Limits = _USUAL,
) -> Server:
    """Serve routes on host and port until the stack unwinds. Raises `CannotStart`."""
    host, port = address
    server = Server(host, port, routes, metrics, tls=tls, limits=limits)
    try:
        await stack.enter_async_context(server)
    except ssl.SSLError as error:
        raise CannotStart(f"the certificate and its key cannot be used: {error.reason or error}") from None
    except OSError as error:
        what = f"{host}:{port}" if error.filename is None else str(error.filename)
        raise CannotStart(f"{what} cannot be served: {error.strerror}") from None
    return server

"""Who may ask the console what, and what its answers permit a browser: before any handler.

A browser carries out what any page says, so a request must come from our own page: its `Host` is the address that is served,
which a name that somebody points here is not (DNS rebinding), and a request that changes something is JSON from our own origin.
Answers let the page load nothing but what stands beside it, run no script but ours, and be shown in no other page.
"""

from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from koordpolicy.runtime.http.routing import JSON, Handler, Request, Response

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Lets requests through to handlers that our own page makes. `host` is what is served; empty: any, for which tokens are asked."""

    def __init__(self, host: str) -> None:
        self._hosts = {*_LOOPBACK, host.lower(), f"[{host.lower()}]"} if host else None

    def before(self, handler: Handler) -> Handler:
        """The handler behind the guard, its answers with our headers."""

        async def guarded(request: Request) -> Response:
            refused = self.refusal(request)
            if refused is None:
                answer = handler(request)
                refused = await answer if isinstance(answer, Awaitable) else answer
            return replace(refused, headers={**HEADERS, **refused.headers})

        return guarded

    def refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None where it is."""
        host = request.headers.get("host", "").lower()
        if self._hosts is not None and _without_port(host) not in self._hosts:
            return Response.text(
                "this console is served under another name: use the address that it printed\n", 421
            )
        origin = request.headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host:
            return Response.text("requests of other pages are not answered\n", 403)
        if (
            request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
            and request.path != "/"
        ):
            return Response.text("requests of other pages are not answered\n", 403)
        if request.method == "POST" and request.headers.get("content-type", "").partition(";")[0] != JSON:
            return Response.text(f"a body is {JSON}\n", 415)
        return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host

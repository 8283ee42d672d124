"""Bytes on the wire, to a server with the extender's routes and a webhook: real sockets on loopback."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.json_bodies import read_json
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.source.git.webhook import judge
from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.extender import extender_server

_LIMITS = ServerLimits(
    connections=32, handshake=1, head=1, body=200_000, body_seconds=1, bodies=1_000_000, seconds=5, idle=1
)
_PATIENCE = 8.0
"""Seconds in which the server has answered, or has given the client up."""
_PIECES = (
    b"\r\n", b"\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"Content-Encoding: gzip\r\n", b"\x1f\x8b\x08\x00",
    b"Expect: 100-continue\r\n", b"Connection: keep-alive\r\n", b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"Host: x\r\n", b"HTTP/1.0",
    b"HTTP/9.9", b"X: " + b"a" * 9_000 + b"\r\n", b"a: b\r\n" * 100, b"[" * 5_000, b'{"a":' * 2_000, b"\x00", b"\xff\xfe", b"%00%ff", b"/" * 9_000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
)  # fmt: skip


class _Served:
    """A server in a thread of its own, for as long as this process lives."""

    def __init__(self) -> None:
        self.metrics = Metrics("fuzz")
        self.port = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        assert self._ready.wait(30)

    async def _serve(self) -> None:
        routes = (
            Route("GET", "/healthz", _well, Protection.READ),
            Route("POST", "/webhook", _heard, Protection.READ),
            *(replace(route, protection=Protection.READ) for route in extender_server().routes()),
        )
        async with HttpServer("127.0.0.1", 0, routes, self.metrics, limits=_LIMITS) as server:
            self.port = server.port
            self._ready.set()
            await asyncio.Event().wait()

    def failures(self) -> str:
        """What went wrong in a way that nobody foresaw."""
        page = self.metrics.text().decode()
        return "\n".join(
            line for line in page.splitlines() if line.startswith("koordpolicy_http_failures_total{")
        )


async def _well(_: Request) -> Response:
    return Response.text("ok\n")


async def _heard(request: Request) -> Response:
    return Response.text(judge("s3cret", "main", request.headers, request.body, read_json))


@lru_cache(maxsize=1)
def _served() -> _Served:
    return _Served()


def http_seeds() -> Sequence[bytes]:
    """Requests as clients of a component send them."""

    def post(path: str, body: bytes, more: str = "") -> bytes:
        head = f"POST /{path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    chunked = b'POST /filter HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n'
    return (
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /metrics?x=%ff HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n",
        chunked,
        post("filter", b'{"pod": {"metadata": {"name": "a"}}, "nodenames": ["n1"]}'),
        post("bind", b'{"podName": "a", "podNamespace": "b", "podUID": "u", "node": "n"}'),
        post("webhook", b'{"ref": "refs/heads/main"}', "X-Hub-Signature-256: sha256=00\r\n"),
        post("webhook", b"{}", "X-Gitlab-Token: s3cret\r\n"),
    )


def http_mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """Bytes changed anywhere, with pieces put in that servers have read differently."""
    data = mutate_bytes(chance, seeds) if chance.random() < 0.5 else chance.choice(seeds)
    for _ in range(chance.randrange(4)):
        at = chance.randint(0, len(data))
        data = data[:at] + chance.choice(_PIECES) + data[at:]
    return data


def _run(data: bytes) -> None:
    served = _served()
    with socket.create_connection(("127.0.0.1", served.port), timeout=_PATIENCE) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass
        except TimeoutError:
            raise Defect("no answer, and no end of the connection") from None
        except OSError:
            pass  # it would not hear more of this
    if failed := served.failures():
        _served.cache_clear()
        raise Defect(failed)


HTTP = Target("http", "bytes on the wire", http_seeds, http_mutate, _run, limit=30.0)

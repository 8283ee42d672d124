"""Bytes to a front by TLS, with a server behind it: what the front lets through, the server must read as the front did."""

import asyncio
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from random import Random

from koordpolicy.runtime.front.messages import CERTIFICATE, FORWARDED
from koordpolicy.runtime.front.server import Front
from koordpolicy.runtime.front.settings import FrontLimits, FrontSettings
from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.listening import listen
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.tls import Tls
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.extender import extender_server
from tests.fuzz.targets.http import http_mutate, http_seeds
from tests.unit.runtime.http.certificates import certificate

_FRONT = FrontLimits(
    connections=32, handshake=1, head_seconds=1, body=200_000, bodies=1_000_000, body_seconds=1, idle=1
)
_BEHIND = ServerLimits(body=200_000, bodies=1_000_000, seconds=5)
_PATIENCE = 8.0
"""Seconds in which the front has answered, or has given the client up."""
_ANSWER = 0.05
"""Seconds that a client waits for answers before it says that it sends no more."""
_WELL = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
_OURS = (
    f"{CERTIFICATE}: e30=\r\n".encode(), f"{FORWARDED}: {'0' * 64}\r\n".encode(), b"koordpolicy-x: \xff\r\n", b"Content-Length: 5 \r\n",
    b"Content-Length : 5\r\n", b"content-length:\t5\r\n", b"Content-Length: 5, 5\r\n", b" Content-Length: 5\r\n", b"?timeout=10s", b"?timeout=9e9h",
)  # fmt: skip


class _Fronted:
    """A front and a server, each in a thread of its own, for as long as this process lives."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-front-"))
        pair = certificate(11)
        (self._folder / "pem").write_bytes(pair.pem)
        (self._folder / "key").write_bytes(pair.key)
        self.metrics = Metrics("fuzz")
        self.context = ssl.create_default_context(cafile=str(self._folder / "pem"))
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True).start()
        assert ready.wait(30)
        sockets = listen("127.0.0.1", 0, 64)
        self.port = int(sockets[0].getsockname()[1])
        tls = Tls(self._folder / "pem", self._folder / "key")
        front = Front(FrontSettings("127.0.0.1", 0, tls, self._folder / "s", limits=_FRONT), sockets)
        self.thread = threading.Thread(target=front.run, daemon=True)
        self.thread.start()

    async def _serve(self, ready: threading.Event) -> None:
        routes = (
            Route("GET", "/healthz", _well, Protection.READ),
            *(replace(route, protection=Protection.READ) for route in extender_server().routes()),
        )
        async with HttpServer(f"unix:{self._folder / 's'}", 0, routes, self.metrics, limits=_BEHIND):
            ready.set()
            await asyncio.Event().wait()

    def defects(self) -> str:
        """What the server behind did not foresee, or could not read though the front has passed it on."""
        page = self.metrics.text().decode()
        names = ("koordpolicy_http_failures_total{", "koordpolicy_http_connections_closed_total{")
        return "\n".join(line for line in page.splitlines() if line.startswith(names))


def _well(_: Request) -> Response:
    return Response.text("ok\n")


@lru_cache(maxsize=1)
def _fronted() -> _Fronted:
    return _Fronted()


def _mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    data = http_mutate(chance, seeds)
    for _ in range(chance.randrange(3)):
        at = data.find(b"\r\n", chance.randint(0, max(len(data) - 1, 0))) + 2
        data = data[:at] + chance.choice(_OURS) + data[at:]
    return data


def _run(data: bytes) -> None:
    fronted = _fronted()
    with suppress(OSError):  # it would not hear more of this
        _converse(fronted, data)
    well = _converse(fronted, _WELL)
    if not well.startswith(b"HTTP/1.1 200 ") or not fronted.thread.is_alive():
        _fronted.cache_clear()
        raise Defect(f"it is not well any more: {well!r}")
    if found := fronted.defects():
        _fronted.cache_clear()
        raise Defect(found)


def _converse(fronted: _Fronted, data: bytes) -> bytes:
    """What is answered. Raises OSError, and `Defect` where neither an answer nor an end comes."""
    until = time.monotonic() + _PATIENCE
    with (
        socket.create_connection(("127.0.0.1", fronted.port), timeout=_PATIENCE) as plain,
        fronted.context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(data)
        client.settimeout(_ANSWER if data != _WELL else _PATIENCE)
        told = b""
        while True:
            try:
                piece = client.recv(65_536)
            except TimeoutError:
                if time.monotonic() > until:
                    raise Defect("no answer, and no end of the connection") from None
                with suppress(OSError):
                    client.shutdown(socket.SHUT_WR)
                client.settimeout(_PATIENCE)
                continue
            if not piece:
                return told
            told += piece


FRONT = Target("front", "bytes to a front", http_seeds, _mutate, _run, limit=30.0)

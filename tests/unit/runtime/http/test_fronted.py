"""A server on a Unix socket, as a front asks it."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from koordpolicy.runtime.front.messages import CERTIFICATE, certificate_text
from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Authentication, Authenticator, Protection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from tests.unit.runtime.http.clients import HANG, LOOPS, play

LIMITS: Final = ServerLimits(body=1000, bodies=1500, seconds=0.3)


@dataclass(frozen=True)
class Answer:
    """What came, and whether the connection ended with it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Front:
    """One connection, as a front has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, target: str, body: bytes = b"", method: str = "POST", **headers: str) -> None:
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {target} HTTP/1.1\r\nHost: a\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode("latin-1") + body)

    async def answer(self, *, body: bool = True) -> Answer:
        async with asyncio.timeout(HANG):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")[:-2]
            headers = {
                name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
            }
            length = int(headers["content-length"]) if body else 0
            return Answer(int(first.split()[1]), headers, await self._reader.readexactly(length))

    async def ask(self, target: str, body: bytes = b"", method: str = "POST", **headers: str) -> Answer:
        self.send(target, body, method, **headers)
        return await self.answer(body=method != "HEAD")

    async def rest(self) -> bytes:
        """What comes until the connection ends."""
        async with asyncio.timeout(HANG):
            return await self._reader.read()


def told(request: Request) -> Response:
    words = f"{request.path} {dict(request.query)} {request.headers.get('x-test')} "
    return Response(201, words.encode() + request.body, headers={"X-Echo": "yes"})


async def late(_: Request) -> Response:
    await asyncio.sleep(0.05)
    return Response.text("late\n")


async def never(_: Request) -> Response:
    await asyncio.sleep(60)
    return Response.text("never\n")


def fail(_: Request) -> Response:
    raise RuntimeError("a secret")


def no_more(_: Request) -> Response:
    return Response(200, b"go", last=True)


ROUTES: Final = (
    Route("POST", "/told", told, Protection.OPEN),
    Route("GET", "/told", told, Protection.OPEN),
    Route("POST", "/late", late, Protection.OPEN),
    Route("POST", "/never", never, Protection.OPEN),
    Route("POST", "/fail", fail, Protection.OPEN),
    Route("POST", "/last", no_more, Protection.OPEN),
    Route("POST", "/write", told, Protection.WRITE),
)


@asynccontextmanager
async def served(
    folder: Path, metrics: Metrics | None = None, authenticator: Authenticator | None = None
) -> AsyncIterator[HttpServer]:
    async with HttpServer(
        f"unix:{folder / 's'}", 0, ROUTES, metrics, limits=LIMITS, authenticator=authenticator
    ) as server:
        yield server


@asynccontextmanager
async def front(folder: Path) -> AsyncIterator[Front]:
    reader, writer = await asyncio.open_unix_connection(folder / "s")
    try:
        yield Front(reader, writer)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


@pytest.mark.parametrize("loop", LOOPS)
def test_requests_are_answered_one_after_the_other(loop: str, tmp_path: Path) -> None:
    metrics = Metrics("test")

    async def scene() -> None:
        async with served(tmp_path, metrics), front(tmp_path) as one:
            answer = await one.ask("/told?timeout=10s&timeout=1s&x=%20", b"body", X_Test="a\xff")
            assert (answer.status, answer.headers["x-echo"]) == (201, "yes")
            assert answer.body.decode() == "/told {'timeout': '10s', 'x': ' '} a\xff body"
            head = await one.ask("/told", method="HEAD")
            assert (head.status, head.body, int(head.headers["content-length"]) > 0) == (201, b"", True)
            assert (await one.ask("/late")).body == b"late\n"
            assert (await one.ask("/late", method="GET")).status == 405
            assert (await one.ask("/none")).status == 404
            assert (await one.ask("/never")).status == 504
            assert (await one.ask("/fail")).status == 500
            packed = await one.ask("/told", gzip.compress(b"x" * 900), Content_Encoding="gzip")
            assert packed.body.endswith(b" " + b"x" * 900)
            assert (await one.ask("/told", gzip.compress(bytes(1001)), Content_Encoding="gzip")).status == 413
            assert (await one.ask("/told", b"x", Content_Encoding="br")).status == 415
            assert (await one.ask("/told", b"last")).status == 201

    play(loop, scene)
    assert metrics.value("koordpolicy_http_requests_total", path="/told", code="201") == 4
    assert metrics.value("koordpolicy_http_failures_total", path="/fail", error="RuntimeError") == 1


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"rubbish\r\n\r\n", 400),
        (b"POST /told HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST /told HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", 413),
        (b"POST /never HTTP/1.1\r\nContent-Length: 0\r\n\r\nPOST /told HTTP/1.1\r\n", 400),
    ],
)
def test_what_no_front_says_ends_the_connection(said: bytes, status: int, tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path), front(tmp_path) as one:
            one.writer.write(said[:10])
            await asyncio.sleep(0.01)
            one.writer.write(said[10:])
            rest = await one.rest()
            assert rest.startswith(f"HTTP/1.1 {status} ".encode()), rest

    play("uvloop", scene)


def test_a_body_takes_room_as_it_comes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path), front(tmp_path) as one, front(tmp_path) as other:
            one.writer.write(b"POST /told HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n" + b"x" * 100)
            await asyncio.sleep(0.05)
            assert (await other.ask("/told", b"x" * 900)).status == 201
            one.writer.write(b"x" * 800)
            assert (await one.answer()).status == 201

    play("uvloop", scene)


def test_bodies_beyond_what_all_may_take_are_to_be_brought_later(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path), front(tmp_path) as one, front(tmp_path) as other:
            one.send("/never", b"x" * 900)
            await asyncio.sleep(0.05)
            answer = await other.ask("/told", b"x" * 900)
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert (await one.answer()).status == 504
            async with front(tmp_path) as later:
                assert (await later.ask("/told", b"x" * 900)).status == 201

    play("uvloop", scene)


def test_a_front_that_is_gone_gives_its_room_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path):
            for _ in range(3):
                async with front(tmp_path) as one:
                    one.send("/never", b"x" * 900)
                    await asyncio.sleep(0.05)
                async with front(tmp_path) as half:
                    half.writer.write(b"POST /told HTTP/1.1\r\nContent-Length: 900\r\n\r\nx")
                    await asyncio.sleep(0.02)
            async with front(tmp_path) as one:
                assert (await one.ask("/told", b"x" * 900)).status == 201

    play("uvloop", scene)


def test_what_is_asked_is_answered_before_the_end_and_said_to_be_the_last(tmp_path: Path) -> None:
    async def scene() -> None:
        async with AsyncExitStack() as stack:
            async with served(tmp_path) as server:
                one = await stack.enter_async_context(front(tmp_path))
                other = await stack.enter_async_context(front(tmp_path))
                idle = await stack.enter_async_context(front(tmp_path))
                one.send("/late")
                await asyncio.sleep(0.01)
                server.closing = True
                assert (await other.ask("/told", b"x")).headers["connection"] == "close"
                assert await other.rest() == b""
            answer = await one.answer()
            assert (answer.body, answer.headers["connection"]) == (b"late\n", "close")
            assert await one.rest() == await idle.rest() == b""

    play("uvloop", scene)


def test_answers_may_end_their_connection(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path), front(tmp_path) as one:
            answer = await one.ask("/last")
            assert (answer.body, answer.headers["connection"]) == (b"go", "close")
            assert await one.rest() == b""

    play("uvloop", scene)


def test_fronts_say_who_has_asked_them(tmp_path: Path) -> None:
    async def scene() -> None:
        authenticator = Authenticator(Authentication(names=("kube-apiserver",)), client_certificates=True)
        async with served(tmp_path, authenticator=authenticator), front(tmp_path) as one:
            assert (await one.ask("/write", b"x")).status == 401
            for name, status in (("kube-apiserver", 201), ("somebody", 403)):
                said = certificate_text({"subject": ((("commonName", name),),)})
                answer = await one.ask("/write", b"x", **{CERTIFICATE: said})
                assert answer.status == status

    play("uvloop", scene)

"""Requests that are answered without a library: the same answers, in order, within the same limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.connections import HttpConnection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import certificate
from tests.unit.runtime.http.clients import HEALTH, LOOPS, Client, client, is_well, play, trusting, well
from tests.unit.runtime.scenes import until

LIMITS: Final = ServerLimits(body=400_000, bodies=1_000_000, body_seconds=1.5, seconds=5.0)
LARGE: Final = b"x" * 300_000


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def by_library(monkeypatch: pytest.MonkeyPatch) -> list[HttpConnection]:
    """The connections that were handed to the library."""
    seen: list[HttpConnection] = []
    made = HttpConnection.connection_made

    def noted(self: HttpConnection, transport: asyncio.BaseTransport) -> None:
        seen.append(self)
        made(self, transport)

    monkeypatch.setattr(HttpConnection, "connection_made", noted)
    return seen


def told(request: Request) -> Response:
    words = f"{request.path} {dict(request.query)} {request.headers.get('x-test')} "
    return Response(201, words.encode() + request.body, headers={"X-Echo": "yes"})


async def late(request: Request) -> Response:
    await asyncio.sleep(0.05)
    return Response(200, b"late " + request.body)


def fail(_: Request) -> Response:
    raise RuntimeError("a secret")


def large(_: Request) -> Response:
    return Response(200, LARGE)


ROUTES: Final = (
    Route("GET", "/healthz", well, Protection.OPEN),
    Route("POST", "/told", told, Protection.OPEN),
    Route("POST", "/late", late, Protection.OPEN),
    Route("POST", "/fail", fail, Protection.OPEN),
    Route("POST", "/large", large, Protection.OPEN),
    Route("POST", "/write", told, Protection.WRITE),
)


@asynccontextmanager
async def served(metrics: Metrics | None = None, limits: ServerLimits = LIMITS) -> AsyncIterator[HttpServer]:
    async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=limits) as server:
        yield server


def post(target: str, body: bytes = b"", *lines: str) -> bytes:
    more = "".join(f"{line}\r\n" for line in lines)
    return f"POST {target} HTTP/1.1\r\nHost: a\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_plain_requests_need_no_library_however_they_come(
    loop: str, by_library: list[HttpConnection]
) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with served(metrics) as server, client(server) as one:
            for _ in range(3):
                one.send(post("/told?a=1&a=2&b=%20", b"body", "X-Test: mine"))
                assert await one.answer() == (201, b"/told {'a': '1', 'b': ' '} mine body")
            # All at once, those whose answers take time among them: answers keep the order.
            one.send(post("/told", b"1") + post("/late", b"2") + post("/told", b"3") + post("/fail"))
            assert [await one.answer() for _ in range(4)] == [
                (201, b"/told {} None 1"), (200, b"late 2"), (201, b"/told {} None 3"), (500, b"internal error\n"),
            ]  # fmt: skip
            head, body = post("/told", b"in two")[:-6], b"in two"
            one.send(head)
            await asyncio.sleep(0.05)
            one.send(body)
            assert await one.answer() == (201, b"/told {} None in two")
            assert metrics.value("koordpolicy_http_requests_total", path="/told", code="201") == 6
        assert by_library == []

    play(loop, scene)


OTHERS: Final = {
    "another-method": (HEALTH, (200, b"ok\n")),
    "no-route": (post("/nowhere"), (404, b"not found\n")),
    "a-route-for-some": (post("/write"), (401, None)),
    "chunked": (b"POST /told HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", (201, b"/told {} None ab")),
    "two-lengths": (b"POST /told HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", (400, None)),
    "length-and-chunks": (
        b"POST /told HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /fail HTTP/1.1\r\n\r\n", (400, None),
    ),
    "a-folded-line": (b"POST /told HTTP/1.1\r\nHost: a\r\nX-Test: a\r\n b\r\nContent-Length: 0\r\n\r\n", (400, None)),
    "many-lines": (post("/told", b"", *["X: y"] * 1000), (400, None)),
    "a-long-line": (post("/told", b"", "X: " + "y" * 9000), (400, None)),
    "packed": (post("/told", b"no gzip", "Content-Encoding: gzip"), (400, None)),
    "too-large": (post("/told", b"x" * 500_000), (413, None)),
    "large": (post("/told", LARGE), (201, b"/told {} None " + LARGE)),
    "a-front-s-word": (post("/told", b"x", "Koordpolicy-Client-Certificate: e30="), (201, b"/told {} None x")),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_all_others_are_the_library_s(loop: str, name: str, by_library: list[HttpConnection]) -> None:
    sent, (status, body) = OTHERS[name]

    async def scene() -> None:
        async with served() as server, client(server) as one:
            one.send(post("/told", b"first"))
            assert await one.status() == 201
            assert by_library == []
            async with client(server) as two:
                two.send(post("/told", b"1") + sent)
                assert await two.answer() == (201, b"/told {} None 1")
                found = await two.answer()
                assert found[0] == status
                assert body is None or found[1] == body
            assert len(by_library) == 1
            assert await is_well(server)

    play(loop, scene)


def test_a_body_that_stops_is_told_so(loop: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with served(metrics) as server, client(server) as one:
            one.send(post("/told", b"1") + post("/told", b"half of it")[:-5])
            assert (await one.answer())[0] == 201
            assert (await one.answer())[0] == 408

    play(loop, scene)


def test_who_takes_no_answers_is_not_read_any_more(loop: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        limits = ServerLimits(idle=1.0)
        async with served(metrics, limits) as server, client(server) as one:
            for _ in range(20_000):
                one.send(post("/large"))
            await until(lambda: (metrics.value("koordpolicy_http_connections_closed_total", reason="idle") or 0) + (
                metrics.value("koordpolicy_http_connections_closed_total", reason="slow") or 0
            ) >= 1)  # fmt: skip
            answered = metrics.value("koordpolicy_http_requests_total", path="/large", code="200") or 0
            assert 0 < answered < 200

    play(loop, scene)


def test_bodies_have_the_room_that_all_share(loop: str) -> None:
    async def scene() -> None:
        limits = ServerLimits(bodies=1000)
        async with served(limits=limits) as server, client(server) as one, client(server) as two:
            one.send(post("/told", b"x" * 900)[:-1])
            await asyncio.sleep(0.05)
            two.send(post("/told", b"y" * 900))
            assert (await two.answer())[0] == 503
            one.send(b"x")
            assert (await one.answer())[0] == 201
            async with client(server) as three:  # and what was taken is given back
                three.send(post("/told", b"z" * 900))
                assert (await three.answer())[0] == 201

    play(loop, scene)


def test_what_is_promised_takes_no_room_before_it_comes(loop: str) -> None:
    async def scene() -> None:
        async with (
            served(limits=ServerLimits(bodies=1000)) as server,
            client(server) as one,
            client(server) as two,
        ):
            one.send(post("/told", b"x" * 900)[:-880])
            await asyncio.sleep(0.05)
            two.send(post("/told", b"y" * 900))
            assert (await two.answer())[0] == 201
            one.send(b"x" * 480)
            await asyncio.sleep(0.05)
            two.send(post("/told", b"y" * 900))  # over what has come there is no room for these
            assert (await two.answer())[0] == 503
            one.send(b"x" * 400)
            assert (await one.answer())[0] == 201
            async with client(server) as three:
                three.send(post("/told", b"z" * 1000))
                assert (await three.answer())[0] == 201

    play(loop, scene)


@pytest.mark.parametrize("before", [b"", post("/told"), post("/late")], ids=["alone", "told", "late"])
def test_half_a_head_has_the_time_of_one_whatever_it_came_with(loop: str, before: bytes) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with (
            served(metrics, ServerLimits(head=0.2, idle=60.0)) as server,
            client(server) as idle,
            client(server) as one,
        ):
            idle.send(post("/told"))
            assert (await idle.answer())[0] == 201
            one.send(before + b"POST /told HTT")
            async with asyncio.timeout(20):
                if before:
                    assert (await one.answer())[0] in (200, 201)
                assert await one.ended()
            assert metrics.value("koordpolicy_http_connections_closed_total", reason="slow") == 1
            idle.send(post("/told"))  # what waits between two requests has its own time
            assert (await idle.answer())[0] == 201

    play(loop, scene)


def test_the_end_waits_for_answers_and_says_that_they_are_the_last(loop: str) -> None:
    async def scene() -> None:
        async with served() as server, client(server) as one, client(server) as idle:
            idle.send(post("/told"))
            assert await idle.status() == 201
            one.send(post("/late", b"still"))
            await asyncio.sleep(0.01)
            ending = asyncio.ensure_future(server.__aexit__())
            assert await one.answer() == (200, b"late still")
            assert await one.ended()
            assert await idle.ended()
            await ending

    play(loop, scene)


def test_who_goes_away_leaves_nothing_behind(loop: str) -> None:
    async def scene() -> None:
        async with served(limits=ServerLimits(bodies=1000)) as server:
            for sent in (post("/late", b"x" * 900), post("/told", b"x" * 900)[:-5]):
                async with client(server) as one:
                    one.send(sent)
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)
            async with client(server) as one:
                one.send(post("/told", b"x" * 900))
                assert (await one.answer())[0] == 201

    play(loop, scene)


def test_by_tls_as_well(loop: str, tmp_path: Path, by_library: list[HttpConnection]) -> None:
    async def scene() -> None:
        key, pem = tmp_path / "key", tmp_path / "pem"
        pair = certificate(1)
        pem.write_bytes(pair.pem)
        key.write_bytes(pair.key)
        async with HttpServer("127.0.0.1", 0, ROUTES, tls=Tls(pem, key), limits=LIMITS) as server:
            async with client(server, trusting(pair.pem)) as one:
                await _talk(one)
            assert len(by_library) == 1

    play(loop, scene)


async def _talk(one: Client) -> None:
    for _ in range(2):
        one.send(post("/told", b"x" * 40_000))
        assert (await one.answer())[0] == 201
    one.send(HEALTH)
    assert await one.answer() == (200, b"ok\n")
    one.send(post("/told"))
    assert (await one.answer())[0] == 201

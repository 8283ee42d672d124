"""Clients that hold a server up, over real sockets: nobody else waits for them, and the process goes on."""

import asyncio
import resource
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.listening import listen
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import certificate
from tests.unit.runtime.http.clients import HEALTH, LOOPS, ROUTES, Client, client, is_well, play, trusting
from tests.unit.runtime.scenes import until

PLACES = 20
PATIENT = ServerLimits(connections=PLACES, handshake=3600, head=3600, body_seconds=3600, idle=3600)
"""Only newcomers end connections."""
HASTY = ServerLimits(connections=PLACES, handshake=1.5, head=0.5, body_seconds=0.5, idle=0.5)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def closed(metrics: Metrics, reason: str) -> float:
    return metrics.value("koordpolicy_http_connections_closed_total", reason=reason) or 0.0


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


STALLS = {
    "nothing": b"",
    "half-a-line": b"GET /heal",
    "half-a-head": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-",
    "half-a-body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
    "half-a-chunk": b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a-request-and-a-half": HEALTH + HEALTH[:20],
}


@pytest.mark.parametrize("stall", STALLS)
def test_a_flood_of_requests_that_never_end_shuts_nobody_out(loop: str, stall: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with (
            HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=PATIENT) as server,
            AsyncExitStack() as stack,
        ):
            before = files()
            for _ in range(5 * PLACES):
                one = await stack.enter_async_context(client(server))
                one.send(STALLS[stall])
            assert await is_well(server)
            await until(lambda: closed(metrics, "room") >= 4 * PLACES)
            # Each of ours is a file of this process, too.
            assert files() - before <= 5 * PLACES + PLACES + 2

    play(loop, scene)


@pytest.mark.parametrize("stall", STALLS)
def test_one_that_keeps_us_waiting_is_ended(loop: str, stall: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=HASTY) as server, client(server) as one:
            one.send(STALLS[stall])
            assert await one.ended()
            assert await is_well(server)

    play(loop, scene)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(loop: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=HASTY) as server, client(server) as one:
            for byte in HEALTH[:-1]:
                one.send(bytes([byte]))
                await asyncio.sleep(0.05)
            assert await one.status() == 0
            assert closed(metrics, "slow") == 1

    play(loop, scene)


def test_a_body_that_does_not_come_is_told(loop: str) -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES, limits=HASTY) as server, client(server) as one:
            one.send(STALLS["half-a-body"])
            assert (await one.answer())[0] == 408

    play(loop, scene)


def test_the_pause_between_requests_is_counted_as_such(loop: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=HASTY) as server, client(server) as one:
            for _ in range(3):
                one.send(HEALTH)
                assert await one.answer() == (200, b"ok\n")
            assert await one.ended()
            await until(lambda: closed(metrics, "idle") + closed(metrics, "slow") == 1)
            assert closed(metrics, "idle") == 1

    play(loop, scene)


def test_each_step_has_a_time_of_its_own(loop: str) -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(0.7)
        return Response(200, request.body)

    async def scene() -> None:
        routes = (*ROUTES, Route("POST", "/slow", slow, Protection.OPEN))
        limits = ServerLimits(head=0.2, idle=0.2)
        async with HttpServer("127.0.0.1", 0, routes, limits=limits) as server, client(server) as one:
            one.send(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
            await asyncio.sleep(0.7)
            one.send(b"cd")
            assert await one.answer() == (200, b"abcd")

    play(loop, scene)


def test_an_answer_that_is_not_taken_is_not_kept(loop: str) -> None:
    async def large(_: Request) -> Response:
        return Response(200, bytes(50_000_000))

    async def scene() -> None:
        metrics = Metrics("test")
        routes = (*ROUTES, Route("GET", "/large", large, Protection.OPEN))
        async with HttpServer("127.0.0.1", 0, routes, metrics, limits=HASTY) as server, client(server) as one:
            one.writer.transport.pause_reading()  # type: ignore[attr-defined]
            one.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: closed(metrics, "idle") == 1)

    play(loop, scene)


def test_who_is_being_served_is_not_ended_for_others(loop: str) -> None:
    async def scene() -> None:
        go_on = asyncio.Event()

        async def slow(_: Request) -> Response:
            await go_on.wait()
            return Response.text("done\n")

        metrics = Metrics("test")
        routes = (*ROUTES, Route("GET", "/slow", slow, Protection.OPEN))
        async with (
            HttpServer("127.0.0.1", 0, routes, metrics, limits=PATIENT) as server,
            AsyncExitStack() as stack,
        ):
            served = await stack.enter_async_context(client(server))
            served.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: go_on._waiters)
            for _ in range(3 * PLACES):
                (await stack.enter_async_context(client(server))).send(b"GET")
            await until(lambda: closed(metrics, "room") >= 2 * PLACES)
            go_on.set()
            assert await served.answer() == (200, b"done\n")

    play(loop, scene)


def test_when_all_are_being_served_newcomers_wait(loop: str) -> None:
    async def scene() -> None:
        go_on = asyncio.Event()
        served = 0

        async def slow(_: Request) -> Response:
            nonlocal served
            served += 1
            await go_on.wait()
            return Response.text("done\n")

        routes = (*ROUTES, Route("GET", "/slow", slow, Protection.OPEN))
        async with HttpServer("127.0.0.1", 0, routes, limits=PATIENT) as server, AsyncExitStack() as stack:
            for _ in range(PLACES):
                one = await stack.enter_async_context(client(server))
                one.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: served == PLACES)
            newcomer = await stack.enter_async_context(client(server))
            newcomer.send(HEALTH)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await newcomer.status()
            go_on.set()
            assert await is_well(server)

    play(loop, scene)


def test_the_address_that_keeps_most_waiting_makes_room(loop: str) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        async with (
            HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=PATIENT) as server,
            AsyncExitStack() as stack,
        ):
            calm = await stack.enter_async_context(client(server, address="127.0.0.2"))
            calm.send(b"GET /healthz")
            for _ in range(4 * PLACES):
                (await stack.enter_async_context(client(server))).send(b"GET")
            await until(lambda: closed(metrics, "room") >= 3 * PLACES)
            calm.send(b" HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await calm.answer() == (200, b"ok\n")

    play(loop, scene)


@pytest.mark.parametrize(
    "said", [b"", b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n"], ids=["nothing", "half", "plain"]
)
def test_handshakes_that_stall_shut_nobody_out(loop: str, said: bytes, tmp_path: Path) -> None:
    pair = certificate(1)
    pem, key = tmp_path / "pem", tmp_path / "key"
    pem.write_bytes(pair.pem), key.write_bytes(pair.key)

    async def scene() -> None:
        tls, mine = Tls(pem, key), trusting(pair.pem)
        async with (
            HttpServer("127.0.0.1", 0, ROUTES, tls=tls, limits=PATIENT) as server,
            AsyncExitStack() as stack,
        ):
            before = files()
            for _ in range(5 * PLACES):
                (await stack.enter_async_context(client(server))).send(said)
            assert await is_well(server, mine)
            assert files() - before <= 5 * PLACES + PLACES + 4
        async with HttpServer("127.0.0.1", 0, ROUTES, tls=tls, limits=HASTY) as server, client(server) as one:
            one.send(said)
            assert await one.ended()
            assert await is_well(server, mine)

    play(loop, scene)


def test_what_stalls_does_not_keep_the_server_from_its_end(loop: str) -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES) as server:
            assert await is_well(server)  # loops open files of their own when they are first needed
        before = files()
        async with AsyncExitStack() as clients:
            async with HttpServer("127.0.0.1", 0, ROUTES, limits=PATIENT) as server:
                stalled: list[Client] = []
                for stall in STALLS.values():
                    stalled.append(await clients.enter_async_context(client(server)))
                    stalled[-1].send(stall)
                assert await is_well(server)
            for one in stalled:
                assert await one.ended()
        await until(lambda: files() <= before)

    play(loop, scene)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_request_that_is_coming_at_the_end_is_answered(loop: str) -> None:
    async def scene() -> None:
        async with AsyncExitStack() as clients:
            async with HttpServer("127.0.0.1", 0, ROUTES, limits=PATIENT) as server:
                half = await clients.enter_async_context(client(server))
                half.send(HEALTH[:20])
                new = await clients.enter_async_context(client(server))
                assert await is_well(server)
                server.closing = True
                loop_now = asyncio.get_running_loop()
                loop_now.call_later(0.1, half.send, HEALTH[20:])
                loop_now.call_later(0.1, new.send, HEALTH)
            assert (await half.answer())[0] == (await new.answer())[0] == 200

    play(loop, scene)


def test_files_are_left_for_the_rest_of_the_process() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ServerLimits(connections=3).places == 3
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        assert ServerLimits().places == 256
        assert ServerLimits(connections=10**6).places == 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("host", "reached"),
    [("127.0.0.1", ["127.0.0.1"]), ("localhost", ["127.0.0.1"]), ("", ["127.0.0.1", "127.0.0.9"])],
)
def test_where_a_host_is_listened_at(host: str, reached: list[str]) -> None:
    sockets = listen(host, 0, 10)
    try:
        (port,) = {one.getsockname()[1] for one in sockets}
        for address in reached:
            socket.create_connection((address, port), timeout=5).close()
    finally:
        for one in sockets:
            one.close()

"""The server of a process, asked over real sockets."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest

from koordpolicy.runtime.health import health_routes
from koordpolicy.runtime.http import HttpServer, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.process import Process
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import certificate
from tests.unit.runtime.http.clients import client
from tests.unit.runtime.scenes import broken, live_of, running, tree, until


async def ask(
    server: HttpServer, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, str, Mapping[str, str]]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, f"http://127.0.0.1:{server.port}{path}", data=body, headers=headers
        ) as answer,
    ):
        return answer.status, await answer.text(), answer.headers


async def echo(request: Request) -> Response:
    said = {"method": request.method, "query": dict(request.query), "x": request.headers.get("x-test")}
    return Response(201, json.dumps(said).encode() + request.body, "application/json", {"X-Echo": "yes"})


async def fail(_: Request) -> Response:
    raise RuntimeError("a secret")


async def sleep(_: Request) -> Response:
    await asyncio.sleep(60)
    return Response.text("late")


ROUTES = (
    Route("POST", "/echo", echo, Protection.OPEN),
    Route("GET", "/fail", fail, Protection.OPEN),
    Route("GET", "/sleep", sleep, Protection.OPEN),
)


def test_routes_answer_and_others_do_not(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        limits = ServerLimits(body=1000, seconds=0.3)
        async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=limits) as server:
            status, text, headers = await ask(server, "/echo?a=1", "POST", b"body", **{"X-Test": "t"})
            assert (status, text) == (201, '{"method": "POST", "query": {"a": "1"}, "x": "t"}body')
            assert (headers["X-Echo"], headers["Content-Type"]) == ("yes", "application/json")
            assert (await ask(server, "/echo"))[0] == 405
            assert (await ask(server, "/nothing"))[0] == 404
            assert (await ask(server, "/echo", "POST", b"x" * 1001))[0] == 413
            status, text, _ = await ask(server, "/fail")
            assert (status, "secret" in text) == (500, False)
            assert (await ask(server, "/sleep"))[0] == 504

            async def parts() -> AsyncIterator[bytes]:
                for _ in range(20):
                    yield b"x" * 100

            async with (
                aiohttp.ClientSession() as session,
                session.post(f"http://127.0.0.1:{server.port}/echo", data=parts()) as answer,
            ):
                assert answer.status == 413
        assert metrics.value("koordpolicy_http_requests_total", path="/echo", code="413") == 2
        assert metrics.value("koordpolicy_http_requests_total", path="other", code="404") == 1

    asyncio.run(scene())
    assert "a secret" in caplog.text


def test_what_nobody_foresaw_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_otherwise(_: Request) -> Response:
        raise LookupError

    async def scene() -> None:
        metrics = Metrics("test")
        routes = (*ROUTES, Route("GET", "/otherwise", fail_otherwise, Protection.OPEN))
        async with HttpServer("127.0.0.1", 0, routes, metrics) as server:
            for _ in range(5):
                assert (await ask(server, "/fail"))[0] == 500
                assert (await ask(server, "/otherwise"))[0] == 500
            assert (await ask(server, "/echo", "POST"))[0] == 201
        for path, error in (("/fail", "RuntimeError"), ("/otherwise", "LookupError")):
            assert metrics.value("koordpolicy_http_failures_total", path=path, error=error) == 5

    asyncio.run(scene())
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} failed; further failures of this kind are only counted" for path in ("/fail", "/otherwise")
    ]


def test_headers_reach_handlers_as_text() -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES) as server, client(server) as one:
            one.send(b"POST /echo HTTP/1.1\r\nHost: x\r\nX-Test: a\xff\xc3\xa4\r\nContent-Length: 0\r\n\r\n")
            _, said = await one.answer()
        assert json.loads(said)["x"].encode() == "a\xff\xc3\xa4".encode()

    asyncio.run(scene())


def test_a_port_that_is_taken_is_an_error() -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES) as server:
            with pytest.raises(OSError, match="in use"):
                async with HttpServer("127.0.0.1", server.port, ROUTES):
                    raise AssertionError

    asyncio.run(scene())


def test_health_readiness_metrics_and_status() -> None:
    async def scene() -> None:
        process = Process("manager", "m1", Metrics("manager"))
        process.readiness.wait_for("policies", "no revision is active yet")
        source = FixedSource("memory", tree(1))
        live = live_of(source, process.metrics)
        process.status.add(lambda: {"nodes": 3})
        routes = health_routes(process, live)
        async with running(live.run()), HttpServer("127.0.0.1", 0, routes, process.metrics) as server:
            assert (await ask(server, "/healthz"))[:2] == (200, "ok\n")
            assert (await ask(server, "/readyz"))[:2] == (503, "policies: no revision is active yet\n")
            await until(live.ready.is_set)
            process.readiness.reached("policies")
            assert (await ask(server, "/readyz"))[:2] == (200, "ok\n")
            source.give(broken())
            await until(lambda: live.rejected)
            status, text, headers = await ask(server, "/statusz?format=json")
            assert (status, headers["Content-Type"]) == (200, "application/json")
            told = json.loads(text)
            assert (told["component"], told["instance"], told["ready"], told["nodes"]) == (
                "manager",
                "m1",
                True,
                3,
            )
            assert told["policies"]["active"]["bundle"] == "fleet"
            assert told["policies"]["rejected"]["reason"] == "CompileFailed"
            (finding,) = told["policies"]["rejected"]["findings"]
            assert (finding["code"], finding["file"], finding["line"]) == ("KP203", "all.yaml", 5)
            assert [past["result"] for past in told["policies"]["history"]] == ["rejected", "activated"]
            assert json.loads((await ask(server, "/statusz", Accept="application/json"))[1])["ready"]
            words = (await ask(server, "/statusz"))[1]
            assert "koordpolicy manager" in words
            assert "error[KP203]" in words
            assert "nodes: 3" in words
            status, text, headers = await ask(server, "/metrics")
            assert status == 200
            assert headers["Content-Type"].startswith("text/plain; version=")
            assert "koordpolicy_active_revision_info{" in text
            process.stop("the test is over")
            assert (await ask(server, "/readyz"))[0] == 503
            assert (await ask(server, "/healthz"))[0] == 200

    asyncio.run(scene())


async def serial(server: HttpServer, authority: Path) -> str:
    """The serial number of the certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=str(authority))
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    try:
        return str(writer.get_extra_info("peercert")["serialNumber"])
    finally:
        writer.close()


def test_a_renewed_certificate_is_taken_and_a_half_written_pair_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pem, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    first, second = certificate(1), certificate(2)
    pem.write_bytes(first.pem), key.write_bytes(first.key)
    both = tmp_path / "both.pem"
    both.write_bytes(first.pem + second.pem)

    async def scene() -> None:
        tls = Tls(pem, key)
        async with HttpServer("127.0.0.1", 0, ROUTES, tls=tls, limits=ServerLimits(reread=0.02)) as server:
            before = await serial(server, both)
            pem.write_bytes(second.pem)  # the key is still the old one's
            await until(lambda: "of no use yet" in caplog.text)
            assert await serial(server, both) == before
            await asyncio.sleep(0.2)  # ten looks
            assert caplog.text.count("of no use yet") == 1
            key.write_bytes(second.key)
            await until(lambda: "was renewed" in caplog.text)
            assert await serial(server, both) != before

    caplog.set_level("INFO", "koordpolicy")
    asyncio.run(scene())

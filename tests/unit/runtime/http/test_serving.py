"""What may be served at an address, and what is refused at the start, with the remedy."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.runtime.http import Route
from koordpolicy.runtime.http.authentication import Authentication, Protection
from koordpolicy.runtime.http.serving import Endpoint, effective, is_loopback, serve
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import CannotStart
from koordpolicy.runtime.tls import Tls
from tests.unit.runtime.http.certificates import certificate
from tests.unit.runtime.http.clients import client, play, well

HERE, EVERYWHERE = "127.0.0.1", ""
PLAIN_TLS = Tls(Path("c"), Path("k"))
CLIENTS = Tls(Path("c"), Path("k"), Path("a"))
TOKEN = {"token_file": Path("t")}
READ, WRITE = Protection.READ, Protection.WRITE
NOT_HERE = "such as 127.0.0.1"

CASES: list[tuple[str, Tls | None, dict[str, Any], Protection, tuple[bool, bool] | str]] = [
    # host, TLS, settings, what is served → reads open, writes open; or what is said
    (HERE, None, {}, READ, (True, False)),
    (HERE, None, TOKEN, READ, (False, False)),
    (HERE, None, {"delegated": True}, READ, (False, False)),
    (HERE, CLIENTS, {}, READ, (False, False)),
    (HERE, CLIENTS, {"anonymous_reads": True}, READ, (True, False)),
    (HERE, None, {}, WRITE, "--http-anonymous-auth if all of them may"),
    (HERE, None, {"anonymous_writes": True}, WRITE, (True, True)),
    (HERE, PLAIN_TLS, {}, WRITE, "every process on this host"),
    (HERE, CLIENTS, {}, WRITE, (False, False)),
    (HERE, CLIENTS, {"anonymous_writes": True}, WRITE, (False, False)),
    (EVERYWHERE, None, {}, READ, "--http-anonymous-auth if everyone may read that"),
    (EVERYWHERE, PLAIN_TLS, {}, READ, "give --tls-client-ca-file, --bearer-token-file or --delegated-auth"),
    (EVERYWHERE, None, {"anonymous_reads": True}, READ, (True, False)),
    (EVERYWHERE, None, TOKEN, READ, "tokens in clear text"),
    (EVERYWHERE, None, {"delegated": True}, READ, "tokens in clear text"),
    (EVERYWHERE, PLAIN_TLS, TOKEN, READ, (False, False)),
    (EVERYWHERE, PLAIN_TLS, {"delegated": True}, WRITE, (False, False)),
    (EVERYWHERE, CLIENTS, {}, WRITE, (False, False)),
    (EVERYWHERE, None, {"anonymous_writes": True}, WRITE, "act with this process's rights"),
    (EVERYWHERE, None, {"anonymous_reads": True}, WRITE, "act with this process's rights"),
    ("0.0.0.0", PLAIN_TLS, {"anonymous_writes": True}, WRITE, NOT_HERE),  # noqa: S104  # nothing is bound
    ("192.0.2.1", None, {}, READ, NOT_HERE),
    ("::", None, {}, READ, NOT_HERE),
    ("::1", None, {}, READ, (True, False)),
    ("localhost", None, {"anonymous_writes": True}, WRITE, (True, True)),
    (EVERYWHERE, None, {}, Protection.OPEN, (False, False)),
    (EVERYWHERE, None, {}, Protection.SIGNED, (False, False)),
]  # fmt: skip


@pytest.mark.parametrize(("host", "tls", "settings", "served", "expected"), CASES)
def test_what_may_be_served_where(
    host: str,
    tls: Tls | None,
    settings: dict[str, Any],
    served: Protection,
    expected: tuple[bool, bool] | str,
) -> None:
    endpoint = Endpoint("--http", host, 1, tls, Authentication(**settings))
    if isinstance(expected, str):
        with pytest.raises(CannotStart) as refused:
            effective(endpoint, {served})
        assert expected in str(refused.value)
        assert f"--http {host}:1" in str(refused.value)
    else:
        found = effective(endpoint, {served})
        assert (found.anonymous_reads, found.anonymous_writes) == expected


def test_an_address_that_is_none_is_told() -> None:
    assert not is_loopback("192.0.2.1")
    with pytest.raises(OSError, match=r"."):
        is_loopback("no.such.host.invalid")


@pytest.mark.parametrize("missing", ["certificate", "key", "authority"])
@pytest.mark.parametrize("what", ["missing", "no-pem", "a-directory"])
def test_a_file_of_no_use_is_named(tmp_path: Path, missing: str, what: str) -> None:
    pair = certificate(1)
    files = {name: tmp_path / f"the-{name}" for name in ("certificate", "key", "authority")}
    for name, path in files.items():
        path.write_bytes(pair.key if name == "key" else pair.pem)
    broken = files[missing]
    broken.unlink()
    if what == "no-pem":
        broken.write_text("nothing of use")
    elif what == "a-directory":
        broken.mkdir()

    async def scene() -> None:
        endpoint = Endpoint("--http", HERE, 0, Tls(*files.values()))
        async with AsyncExitStack() as stack:
            with pytest.raises(CannotStart) as refused:
                await serve(stack, endpoint, (), Metrics("test"))
            assert str(broken) in str(refused.value)

    play("asyncio", scene)


def test_an_address_in_use_is_named() -> None:
    async def scene() -> None:
        async with AsyncExitStack() as stack:
            first = await serve(stack, Endpoint("--http", HERE, 0), (), Metrics("test"))
            with pytest.raises(CannotStart, match=rf"127\.0\.0\.1:{first.port} cannot be served: "):
                await serve(stack, Endpoint("--http", HERE, first.port), (), Metrics("test"))

    play("uvloop", scene)


def test_an_address_says_what_it_serves_and_to_whom(caplog: pytest.LogCaptureFixture) -> None:
    routes = (
        Route("GET", "/healthz", well, Protection.OPEN),
        Route("GET", "/metrics", well, Protection.READ),
        Route("POST", "/bind", well, Protection.WRITE),
        Route("POST", "/webhook", well, Protection.SIGNED),
    )

    async def scene() -> None:
        settings = Authentication(token_file=Path("t"))
        async with AsyncExitStack() as stack:
            endpoint = Endpoint("--http", HERE, 0, None, settings)
            server = await serve(stack, endpoint, routes, Metrics("test"))
            async with client(server) as one:
                one.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                status, body = await one.answer()
        assert status == 200
        assert body.decode().splitlines() == [
            "POST /bind     for callers with the bearer token",
            "GET  /healthz  for anyone",
            "GET  /metrics  for callers with the bearer token",
            "POST /webhook  for whoever signs the message with the secret",
        ]

    caplog.set_level("INFO", "koordpolicy")
    play("uvloop", scene)
    assert "serves /metrics to callers with the bearer token" in caplog.text

"""Whatever bytes come, a server answers or ends the connection, tells of nothing unforeseen, and goes on."""

import asyncio
import gzip
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.runtime.http import HttpServer, Route
from koordpolicy.runtime.http.authentication import Authentication, Authenticator, Protection
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from tests.unit.runtime.http.clients import ROUTES, client, echo, is_well, play, well

LIMITS: Final = ServerLimits(head=0.1, body_seconds=0.1, idle=0.1, body=1000, bodies=10_000)
GUARDED: Final = (*ROUTES, Route("GET", "/read", well, Protection.READ), Route("POST", "/write", echo))

LINES = st.tuples(
    st.sampled_from([b"GET", b"POST", b"HEAD", b"OPTIONS", b"CONNECT", b"get", b"\xff", b""]),
    st.sampled_from([b" /healthz", b" /echo", b" /write", b" /read", b" *", b" http://x/", b" /%ff?%zz=%00", b" \xff", b""]),
    st.sampled_from([b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b" HTTP/0.9", b""]),
).map(b"".join)  # fmt: skip
HEADERS = st.one_of(
    st.sampled_from(
        [
            b"Host: x", b"Host:", b"Content-Length: 3", b"Content-Length: -1", b"Content-Length: 99999999999999999999",
            b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Content-Encoding: gzip",
            b"Content-Encoding: \xff", b"Connection: close", b"Connection: upgrade", b"Upgrade: websocket",
            b"Expect: 100-continue", b"Authorization: Bearer \xff", b"Authorization: Bearer token", b"Accept: \xff",
            b"Sec-WebSocket-Key: x", b" folded", b"no colon", b"a" * 9000, b"X: " + b"\x00" * 5,
        ]
    ),
    st.binary(max_size=30),
)  # fmt: skip
BODIES = st.one_of(
    st.binary(max_size=50),
    st.sampled_from(
        [
            b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"3;" + b"e" * 9000 + b"\r\nabc\r\n0\r\n\r\n", b"0\r\nTrailer: \xff\r\n\r\n",
            b"-1\r\n", b"ffffffffffffffffff\r\n", gzip.compress(b"abc"), gzip.compress(bytes(100_000))[:40],
        ]
    ),
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    head = [draw(LINES), *draw(st.lists(HEADERS, max_size=5))]
    return b"\r\n".join(head) + draw(st.sampled_from([b"\r\n\r\n", b"\n\n", b"\r\n", b""])) + draw(BODIES)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.lists(st.one_of(requests(), st.binary(max_size=100)), max_size=4), min_size=20, max_size=40)
)
def test_nothing_that_comes_is_unforeseen(loop: str, conversations: Sequence[Sequence[bytes]]) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        # Where credentials are asked for, those that come are looked at.
        authenticator = Authenticator(Authentication(), client_certificates=True)
        async with HttpServer(
            "127.0.0.1", 0, GUARDED, metrics, limits=LIMITS, authenticator=authenticator
        ) as server:

            async def converse(said: Sequence[bytes]) -> None:
                async with client(server) as one:
                    for data in said:
                        one.send(data)
                        await asyncio.sleep(0)
                    assert await one.ended()

            await asyncio.gather(*map(converse, conversations))
            assert await is_well(server)
        assert metrics.numbers().get("koordpolicy_http_failures_total") is None

    play(loop, scene)

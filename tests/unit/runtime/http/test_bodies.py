"""Bodies that become more than they look like: refused before they do."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.runtime.http import HttpServer
from koordpolicy.runtime.http.bodies import BodyProblem, gunzip
from koordpolicy.runtime.http.json_bodies import JsonProblem, is_deeper, memory_needed, read_json
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics
from tests.unit.runtime.http.clients import HEALTH, ROUTES, client, is_well, play

MOST = 10_000
LIMITS = ServerLimits(body=MOST, bodies=2 * MOST)
PLAIN = b"x" * 900


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST /echo HTTP/1.1", b"Host: x", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(body: bytes, size: int, *headers: bytes) -> bytes:
    lines = [b"POST /echo HTTP/1.1", b"Host: x", b"Transfer-Encoding: chunked", *headers]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"\r\n".join(lines) + b"\r\n\r\n" + chunks + b"0\r\n\r\n"


GZIP = b"Content-Encoding: gzip"
PACKED = gzip.compress(PLAIN)
BOMB = gzip.compress(gzip.compress(bytes(9_000_000)))  # unpacked once, as it says

CASES: dict[str, tuple[bytes, int]] = {
    "plain": (sized(PLAIN), 200),
    "chunked": (chunked(PLAIN, 7), 200),
    "gzip": (sized(PACKED, GZIP), 200),
    "gzip-in-chunks": (chunked(PACKED, 3, GZIP), 200),
    "gzip-in-members": (sized(gzip.compress(PLAIN[:400]) + gzip.compress(PLAIN[400:]), GZIP), 200),
    "as-large-as-may-be": (sized(bytes(MOST)), 200),
    "one-byte-more": (sized(bytes(MOST + 1)), 413),
    "one-byte-more-in-chunks": (chunked(bytes(MOST + 1), 1), 413),
    "says-that-it-is-huge": (sized(b"", b"X: y").replace(b"Length: 0", b"Length: 99999999999"), 413),
    "a-length-beyond-64-bits": (sized(b"").replace(b"Length: 0", b"Length: " + b"9" * 30), 400),
    "a-negative-length": (sized(b"").replace(b"Length: 0", b"Length: -1"), 400),
    "two-lengths": (sized(PLAIN, b"Content-Length: 3"), 400),
    "length-and-chunks": (sized(PLAIN, b"Transfer-Encoding: chunked"), 400),
    "a-chunk-without-size": (chunked(PLAIN, 100).replace(b"64\r\n", b"zz\r\n"), 400),
    "a-huge-chunk": (chunked(PLAIN, 100).replace(b"64\r\n", b"ffffffffffffffffff\r\n"), 400),
    "no-gzip": (sized(PLAIN, GZIP), 400),
    "half-a-gzip": (sized(PACKED[:-9], GZIP), 400),
    "an-empty-gzip": (sized(b"", GZIP), 400),
    "gzip-and-more": (sized(PACKED + b"more", GZIP), 400),
    "a-wrong-checksum": (sized(PACKED[:-8] + bytes(8), GZIP), 400),
    "a-bomb": (sized(gzip.compress(bytes(9_000_000)), GZIP), 413),
    "a-bomb-in-a-bomb": (sized(BOMB, GZIP), 200),
    "a-bomb-of-members": (sized(gzip.compress(b"") * 400, GZIP), 400),
    "another-encoding": (sized(PLAIN, b"Content-Encoding: br"), 415),
    "two-encodings": (sized(PACKED, b"Content-Encoding: gzip, gzip"), 415),
    "an-encoding-of-no-text": (sized(PLAIN, b"Content-Encoding: \xff\xfe"), 415),
    "a-long-header": (sized(PLAIN, b"X: " + b"y" * 9000), 400),
    "many-headers": (sized(PLAIN, *[b"X%d: y" % number for number in range(100)]), 400),
    "a-long-line": (b"POST /" + b"y" * 9000 + b" HTTP/1.1\r\n\r\n", 400),
    "no-http": (b"\x00\xff\xfe\r\n\r\n", 400),
    "an-address-that-is-none": (b"POST http://[::1 HTTP/1.1\r\n\r\n", 400),
    "a-path-of-no-text": (b"POST /%ff%00?a=%ff&%zz HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "an-upgrade": (sized(PLAIN, b"Upgrade: websocket", b"Connection: upgrade"), 200),
}


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_made_of_a_body(loop: str, case: str, caplog: pytest.LogCaptureFixture) -> None:
    sent, expected = CASES[case]

    async def scene() -> None:
        metrics = Metrics("test")
        async with HttpServer("127.0.0.1", 0, ROUTES, metrics, limits=LIMITS) as server:
            async with client(server) as one:
                one.send(sent)
                assert await one.status() == expected
            assert await is_well(server)
            assert metrics.numbers().get("koordpolicy_http_failures_total") is None
            # What was taken of the room was given back.
            for _ in range(3):
                async with client(server) as one:
                    one.send(sized(bytes(MOST)))
                    assert (await one.answer())[0] == 200

    play(loop, scene)
    assert caplog.records == []


def test_all_bodies_together_have_a_limit() -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES, limits=LIMITS) as server:
            async with client(server) as first, client(server) as second, client(server) as third:
                for one in (first, second):
                    one.send(sized(bytes(MOST))[:-1])
                await asyncio.sleep(0.1)
                third.send(sized(bytes(MOST)))
                assert (await third.answer())[0] == 503
                for one in (first, second):
                    one.send(b"x")
                    assert (await one.answer())[0] == 200
            async with client(server) as third:
                third.send(sized(bytes(MOST)))
                assert (await third.answer())[0] == 200

    play("uvloop", scene)


def test_a_body_that_nobody_asked_for_is_not_taken() -> None:
    async def scene() -> None:
        async with HttpServer("127.0.0.1", 0, ROUTES, limits=LIMITS) as server, client(server) as one:
            one.send(HEALTH.replace(b"\r\n\r\n", b"\r\nContent-Length: 99999999999\r\n\r\n"))
            assert (await one.answer())[0] == 200

    play("uvloop", scene)


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_gzip_is_unpacked_up_to_a_limit(size: int) -> None:
    assert gunzip(gzip.compress(bytes(size)), 1000) == bytes(size)
    with pytest.raises(BodyProblem) as refused:
        gunzip(gzip.compress(bytes(size + 1001)), 1000)
    assert refused.value.status == 413


@given(st.binary())
def test_whatever_says_that_it_is_gzip_is_unpacked_or_refused(packed: bytes) -> None:
    try:
        found = gunzip(packed, 1000)
    except BodyProblem:
        return
    assert found == zlib.decompressobj(31).decompress(packed)


# --- JSON ---------------------------------------------------------------------------------------------


def traced(work: Callable[[], Any]) -> int:
    """Bytes that it takes, at the highest."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MANY = 20_000
UNITS = [
    "[]", "{}", "[[]]", "[0]", '{"a":0}', '{"k%d":0}', '{"k%d":{}}', "[[[[[]]]]]", "[1,2,3,4,5]", "%d", "%d.5", "-1",
    "1e1", "null", "18446744073709551615", "123456789012345678901234567890", '""', '"a"', '"ab%d"', '"\\n"',
    '"é"', '"é%d"', '"→%d"', '"\\u2192%d"', '"😀%d"', '"\\ud83d\\ude00%d"', '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa😀"',
    '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":[]}',
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("wide", [False, True], ids=["", "beside-wide-text"])
def test_no_json_takes_more_memory_than_is_told_from_its_punctuation(unit: str, wide: bool) -> None:
    units = [unit % number if "%d" in unit else unit for number in range(MANY)]
    first = '"😀",' if wide else ""
    body = f"[{first}{','.join(units)}]".encode()
    assert traced(lambda: read_json(body, 10**9)) <= memory_needed(body)
    assert memory_needed(body) < 110 * len(body), "a limit that is of use"


def test_an_object_of_many_keys_is_within_what_is_told() -> None:
    body = json.dumps({str(number): number for number in range(MANY)}).encode()
    assert traced(lambda: read_json(body, 10**9)) <= memory_needed(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=50,
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_within_limits_is_read_as_it_is(value: Any, ascii_only: bool, indent: int | None) -> None:
    try:
        body = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    except UnicodeEncodeError:
        return
    if "\\ud" in body.decode():  # half surrogates are no text
        return
    assert read_json(body) == json.loads(body)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


NESTED = st.recursive(
    st.text(alphabet='[]{}"\\a\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet='[]{}"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=30,
)


@given(NESTED, st.integers(0, 6))
def test_depth_is_told_without_reading(value: Any, depth: int) -> None:
    body = json.dumps(value).encode()
    assert is_deeper(body, depth) == (depth_of(value) > depth)


@pytest.mark.parametrize("quote", [262_100, 262_143, 262_144, 262_145])
def test_depth_is_told_across_the_pieces_it_is_looked_at_in(quote: int) -> None:
    text = "\\" * 100 + '"[[[['
    for shift in range(4):
        body = b"[" + b" " * (quote + shift - 100) + json.dumps(text).encode() + b",[[]]]"
        assert not is_deeper(body, 3)
        assert is_deeper(body, 2)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "deep": (b"[" * 101 + b"]" * 101, "nested more than 100 levels deep"),
    "deep-objects": (b'{"a":' * 101 + b"1" + b"}" * 101, "nested more than 100"),
    "deep-without-end": (b"[" * 1_000_000, "nested more than 100"),
    "wide": (b"[" + b"[]," * 1_000_000 + b"0]", "bytes of memory; 128000000 are permitted"),
    "wide-objects": (b"[" + b"{}," * 1_000_000 + b"0]", "bytes of memory"),
    "quotes": (b'"' * 10_000_000, "bytes of memory"),
    "commas": (b"," * 10_000_000, "bytes of memory"),
    "half": (b'{"a": ', "not JSON"),
    "nothing": (b"", "not JSON"),
    "no-text": (b'"\xff"', "not JSON"),
    "half-a-surrogate": (b'"\\ud800"', "not JSON"),
    "no-number": (b"NaN", "not JSON"),
    "a-long-number": (b"1" * 1_000_000, "not JSON"),
    "a-large-number": (b"1e999", "not JSON"),
    "two": (b"{} {}", "not JSON"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_json_beyond_the_limits_is_refused(case: str) -> None:
    body, said = HOSTILE[case]
    with pytest.raises(JsonProblem, match=said):
        read_json(body)


def test_what_is_refused_takes_no_memory() -> None:
    body = b"[" + b"[]," * 10_000_000 + b"0]"  # some 2.4 GB as lists

    def refused() -> None:
        with pytest.raises(JsonProblem):
            read_json(body)

    assert traced(refused) < 1_000_000


def test_a_hundred_levels_are_read() -> None:
    body = b"[" * 100 + b"]" * 100
    assert depth_of(read_json(body)) == 100

"""Answers of HTTP/1.1, put together from whatever pieces arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube.api.answer import ApiResponse, MalformedAnswer, Reading

_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

WHOLE: list[tuple[bytes, int, bytes, bool]] = [
    (b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", 201, b"{}", False),
    (b"HTTP/1.1 200\r\ncontent-length:  0 \r\n\r\n", 200, b"", False),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", False),
    (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, b"", False),
    (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        200,
        b"a",
        False,
    ),
    (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a", True),
    (_CHUNKED + b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\n\r\n", 200, b"abc0123456789", False),
    (_CHUNKED + b"1\r\n\r\r\n0\r\nChecksum: 5\r\n\r\n", 200, b"\r", False),
]

BROKEN = [
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    b"HTTP/2 200 OK\r\n\r\n",
    b"HTTP/1.1 099 Low\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nFolded: a\r\n b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na",
    b"HTTP/1.1 103 Early Hints\r\nno header\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 204 No Content\r\nContent-Length: none\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nHalf: a\nContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 200 OK\r\nHalf: a\rContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    _CHUNKED + b"x\r\n",
    _CHUNKED + b"\r\n",
    _CHUNKED + b"1\r\nab\r\n",
    _CHUNKED + b"1FFFFFFFF\r\n",
]


def _fed(pieces: list[bytes]) -> ApiResponse | None:
    reading = Reading()
    found = None
    for number, piece in enumerate(pieces):
        found = reading.feed(piece)
        assert found is None or number == len(pieces) - 1
    return found


@pytest.mark.parametrize(("sent", "status", "body", "last"), WHOLE)
def test_an_answer_is_there_with_its_last_byte(sent: bytes, status: int, body: bytes, last: bool) -> None:
    for pieces in ([sent], [sent[at : at + 1] for at in range(len(sent))]):
        found = _fed(pieces)
        assert found is not None
        assert (found.status, found.body, found.last) == (status, body, last)
    assert Reading().end() is None


@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(0, 400)), sizes=st.lists(st.integers(1, 60)))
def test_pieces_make_no_difference(body: bytes, cuts: list[int], sizes: list[int]) -> None:
    chunks, at = [], 0
    for size in [*sizes, len(body)]:
        part = body[at : at + size]
        if part:
            chunks.append(b"%x\r\n%b\r\n" % (len(part), part))
        at += size
    sent = _CHUNKED + b"".join(chunks) + b"0\r\n\r\n"
    ends = sorted({min(cut, len(sent)) for cut in cuts} | {0, len(sent)})
    found = _fed([sent[begin:end] for begin, end in pairwise(ends)])
    assert found is not None
    assert (found.body, found.last) == (body, False)


@pytest.mark.parametrize("sent", BROKEN)
def test_what_is_not_understood_ends_it(sent: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        Reading().feed(sent)


def test_a_body_without_a_length_goes_to_the_end() -> None:
    reading = Reading()
    assert reading.feed(b"HTTP/1.1 500 Oh\r\nX: 1\r\nRetry-After: 1\r\n\r\nab") is None
    assert reading.feed(b"c") is None
    found = reading.end()
    assert found is not None
    assert (found.status, found.body, found.last, found.first("retry-after")) == (500, b"abc", True, "1")


@pytest.mark.parametrize("sent", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", _CHUNKED])
def test_an_end_that_comes_too_early_gives_no_answer(sent: bytes) -> None:
    reading = Reading()
    assert reading.feed(sent) is None
    assert reading.end() is None


def test_what_follows_an_answer_is_nobodys() -> None:
    found = Reading().feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nWarning: a\r\nWarning: b\r\n\r\naHTTP")
    assert found is not None
    assert found.last
    assert (found.all("warning"), found.first("retry-after")) == (["a", "b"], "")

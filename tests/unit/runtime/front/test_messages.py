"""What a front reads of requests and answers, and what it does not pass on."""

import pytest

from koordpolicy.runtime.front.messages import (
    MessageProblem,
    certificate_of,
    certificate_text,
    plain_answer,
    read_request,
    read_response,
    with_headers,
)

REVIEW = b"POST /mutate-pod?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"


def read(text: bytes) -> object:
    return read_request(bytearray(text), 1000, 100)


def test_a_request_is_read_once_its_head_is_whole() -> None:
    for end in range(len(REVIEW)):
        assert read(REVIEW[:end]) is None
    head = read_request(bytearray(REVIEW + b"\r\nabc"), 1000, 100)
    assert head is not None
    assert (head.text, head.length, head.path) == (REVIEW + b"\r\n", 3, b"/mutate-pod?timeout=10s")
    assert head.taken == len(REVIEW) + 2
    assert head.seconds == 9.0


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (REVIEW + b"Content-Length: 4\r\n\r\n", 400),
        (REVIEW + b"Transfer-Encoding: chunked\r\n\r\n", 411),
        (REVIEW.replace(b"3", b"+3") + b"\r\n", 400),
        (REVIEW.replace(b"3", b"101") + b"\r\n", 413),
        (REVIEW + b" folded: x\r\n\r\n", 400),
        (REVIEW + b"X : y\r\n\r\n", 400),
        (REVIEW + b"X: y\nZ: w\r\n\r\n", 400),
        (REVIEW.replace(b"1.1", b"1.0") + b"\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2000, 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2000 + b"\r\n\r\n", 431),
    ],
)
def test_what_is_not_plain_is_refused(text: bytes, status: int) -> None:
    with pytest.raises(MessageProblem) as told:
        read(text)
    assert told.value.status == status


def test_what_fronts_alone_may_say_is_not_passed_on_from_clients() -> None:
    more = b"koordpolicy-client-CERTIFICATE: forged\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"
    head = read_request(bytearray(REVIEW + more), 1000, 100)
    assert head is not None
    assert head.text == REVIEW + b"\r\n"
    assert head.told == {"koordpolicy-client-certificate": "forged"}
    assert (head.closes, head.waits) == (True, True)


def test_answers_say_whether_to_ask_again() -> None:
    head = read_response(bytearray(plain_answer(503, "later", later=True)), 1000, body=True)
    assert head is not None
    assert (head.again, head.closes, head.length) == (True, True, 6)
    assert b"Connection" not in head.text
    for text, again in ((b"500 Internal", False), (b"200 OK", False)):
        answer = b"HTTP/1.1 " + text + b"\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
        found = read_response(bytearray(answer), 1000, body=True)
        assert found is not None
        assert found.again is again
    with pytest.raises(MessageProblem):
        read_response(bytearray(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 1000, body=True)


def test_certificates_go_through_a_header() -> None:
    certificate = {"subject": ((("commonName", "kube-apiserver\r\nX: ä"),),), "version": 3}
    text = certificate_text(certificate)
    assert with_headers(b"GET / HTTP/1.1\r\n\r\n", {"A": text}).count(b"\r\n") == 3
    assert certificate_of(text) == {"subject": [[["commonName", "kube-apiserver\r\nX: ä"]]]}
    assert certificate_text(None) == ""
    for forged in ("", "x", "e30=x", "W10=", "ä"):
        assert certificate_of(forged) is None

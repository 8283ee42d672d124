"""What servers and proxies answer, as errors of the port."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Rejected,
    TooManyRequests,
    Unreachable,
)
from koordpolicy.kube.api.statuses import failed_watch, refusal
from koordpolicy.kube.errors import Cause


def status(reason: str = "", message: str = "no", **details: Any) -> bytes:
    return json.dumps({"kind": "Status", "reason": reason, "message": message, "details": details}).encode()


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (404, status("NotFound"), NotFound),
        (404, b"404 page not found", NotFound),
        (409, status("AlreadyExists"), AlreadyExists),
        (409, status("Conflict"), Conflict),
        (409, b"", Conflict),
        (410, status("Expired"), Gone),
        (410, status("Gone"), Gone),
        (401, status("Unauthorized"), Forbidden),
        (403, status("Forbidden"), Forbidden),
        (422, status("Invalid"), Invalid),
        (429, status("TooManyRequests"), TooManyRequests),
        (400, status("BadRequest"), Rejected),
        (405, status("MethodNotAllowed"), Rejected),
        (413, b"<html>too large</html>", Rejected),
        (415, status("UnsupportedMediaType"), Rejected),
        (408, b"", Unreachable),
        (500, status("InternalError"), Unreachable),
        (502, b"<html>bad gateway</html>", Unreachable),
        (503, status("ServiceUnavailable"), Unreachable),
        (504, status("Timeout"), Unreachable),
        (504, status("Timeout", causes=[{"reason": "ResourceVersionTooLarge"}]), Gone),
        (302, b"", Unreachable),
    ],
)
def test_codes_and_reasons(code: int, body: bytes, kind: type[KubeError]) -> None:
    assert type(refusal(code, body)) is kind


def test_what_is_wrong_where_is_told() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.nodeName"}]
    error = refusal(422, status("Invalid", "pod is invalid", causes=causes))
    assert isinstance(error, Invalid)
    assert error.causes == (Cause("spec.nodeName", "Required value"),)
    assert error.message == "pod is invalid"


def test_code_and_reason_are_kept() -> None:
    error = refusal(401, status("Unauthorized", "who are you"))
    assert (error.code, error.reason, error.message) == (401, "Unauthorized", "who are you")


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", {}, 7.0),
        ("", {"retryAfterSeconds": 3}, 3.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        ("", {}, 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, 0.0),
        ("-5", {}, 0.0),
        ("9" * 400, {}, 0.0),
    ],
)
def test_the_patience_a_server_asks_for(header: str, details: Any, seconds: float) -> None:
    error = refusal(429, status("TooManyRequests", **details), header)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def test_a_body_that_is_no_status_is_shown_but_not_whole() -> None:
    error = refusal(503, b"<html>" + b"x" * 10_000)
    assert error.message.startswith("<html>xxx")
    assert len(error.message) == 500
    assert refusal(503, b"").message == "HTTP status 503"


def test_a_watch_reports_errors_as_events() -> None:
    gone = {
        "type": "ERROR",
        "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"},
    }
    assert isinstance(failed_watch(json.dumps(gone).encode()), Gone)
    assert isinstance(failed_watch(b'{"type": "ERROR", "object": {}}'), Unreachable)
    assert isinstance(failed_watch(b'{"type": "ERROR", "object": 5}'), Unreachable)
    assert isinstance(failed_watch(b"ERROR"), Unreachable)


@given(
    st.integers(300, 599),
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["code", "reason", "message", "details", "causes", "retryAfterSeconds"]),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value).encode()),
    st.text(max_size=5),
)
def test_any_answer_is_some_error(code: int, body: bytes, header: str) -> None:
    assert refusal(code, body, header).message


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"details":{"causes":' + b"[" * 200_000, b'{"message":"\xff"}']
)
def test_answers_that_are_nested_without_end_or_no_text_are_told_of(body: bytes) -> None:
    assert isinstance(refusal(500, body), KubeError)
    assert isinstance(failed_watch(b'{"object":' + body), Unreachable)

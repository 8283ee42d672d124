import hmac
import json
from typing import Any

import pytest

from koordpolicy.source.git.webhook import Heard, judge

PUSH = json.dumps({"ref": "refs/heads/main", "after": "0" * 40}).encode()


def read(body: bytes) -> Any:
    """As whoever serves the hook does, but for limits."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError from error


def signature(secret: str, body: bytes) -> dict[str, str]:
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()}


@pytest.mark.parametrize(
    ("headers", "heard"),
    [
        (signature("secret", PUSH), Heard.TRIGGERS),
        (signature("other", PUSH), Heard.REFUSED),
        (signature("secret", PUSH + b" "), Heard.REFUSED),
        ({"x-hub-signature-256": ""}, Heard.REFUSED),
        ({"x-hub-signature-256": "sha256=ä"}, Heard.REFUSED),
        ({"x-gitlab-token": "secret"}, Heard.TRIGGERS),
        ({"x-gitlab-token": "secret "}, Heard.REFUSED),
        ({"x-gitlab-token": "ä"}, Heard.REFUSED),
        ({**signature("other", PUSH), "x-gitlab-token": "secret"}, Heard.REFUSED),
        ({}, Heard.REFUSED),
    ],
)
def test_who_knows_the_secret(headers: dict[str, str], heard: Heard) -> None:
    assert judge("secret", "main", headers, PUSH, read) == heard


@pytest.mark.parametrize(
    ("ref", "body", "heard"),
    [
        ("main", PUSH, Heard.TRIGGERS),
        ("refs/heads/main", PUSH, Heard.TRIGGERS),
        ("HEAD", PUSH, Heard.TRIGGERS),
        ("stable", PUSH, Heard.IGNORED),
        ("v1", b'{"ref": "refs/tags/v1"}', Heard.TRIGGERS),
        ("main", b"", Heard.TRIGGERS),
        ("main", b"anything", Heard.TRIGGERS),
        ("main", b"\xff\xfe", Heard.TRIGGERS),
        ("main", b"[1]", Heard.TRIGGERS),
        ("main", b'{"ref": 7}', Heard.TRIGGERS),
        ("main", b"[" * 100_000, Heard.TRIGGERS),
    ],
)
def test_what_it_is_about(ref: str, body: bytes, heard: Heard) -> None:
    assert judge("", ref, {}, body, read) == heard


def test_a_ping_is_no_push() -> None:
    assert judge("", "main", {"x-github-event": "ping"}, b"{}", read) == Heard.IGNORED

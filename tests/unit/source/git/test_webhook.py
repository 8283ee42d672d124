import hmac
import json
from typing import Any

import pytest

from koordpolicy.source.git.webhook import HookOutcome, judge

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
        (signature("secret", PUSH), HookOutcome.TRIGGERS),
        (signature("other", PUSH), HookOutcome.REFUSED),
        (signature("secret", PUSH + b" "), HookOutcome.REFUSED),
        ({"x-hub-signature-256": ""}, HookOutcome.REFUSED),
        ({"x-hub-signature-256": "sha256=ä"}, HookOutcome.REFUSED),
        ({"x-gitlab-token": "secret"}, HookOutcome.TRIGGERS),
        ({"x-gitlab-token": "secret "}, HookOutcome.REFUSED),
        ({"x-gitlab-token": "ä"}, HookOutcome.REFUSED),
        ({**signature("other", PUSH), "x-gitlab-token": "secret"}, HookOutcome.REFUSED),
        ({}, HookOutcome.REFUSED),
    ],
)
def test_who_knows_the_secret(headers: dict[str, str], heard: HookOutcome) -> None:
    assert judge("secret", "main", headers, PUSH, read) == heard


@pytest.mark.parametrize(
    ("ref", "body", "heard"),
    [
        ("main", PUSH, HookOutcome.TRIGGERS),
        ("refs/heads/main", PUSH, HookOutcome.TRIGGERS),
        ("HEAD", PUSH, HookOutcome.TRIGGERS),
        ("stable", PUSH, HookOutcome.IGNORED),
        ("v1", b'{"ref": "refs/tags/v1"}', HookOutcome.TRIGGERS),
        ("main", b"", HookOutcome.TRIGGERS),
        ("main", b"anything", HookOutcome.TRIGGERS),
        ("main", b"\xff\xfe", HookOutcome.TRIGGERS),
        ("main", b"[1]", HookOutcome.TRIGGERS),
        ("main", b'{"ref": 7}', HookOutcome.TRIGGERS),
        ("main", b"[" * 100_000, HookOutcome.TRIGGERS),
    ],
)
def test_what_it_is_about(ref: str, body: bytes, heard: HookOutcome) -> None:
    assert judge("", ref, {}, body, read) == heard


def test_a_ping_is_no_push() -> None:
    assert judge("", "main", {"x-github-event": "ping"}, b"{}", read) == HookOutcome.IGNORED

"""Messages of a host of repositories."""

import json
from collections.abc import Sequence
from typing import Any

from koordpolicy.runtime.http.json_bodies import read_json
from koordpolicy.source.git.webhook import judge
from tests.fuzz.mutations import mutate_bytes
from tests.fuzz.target import Target

_SIGNED = "x-hub-signature-256: sha256=00"


def _seeds() -> Sequence[bytes]:
    heads = (_SIGNED, "x-gitlab-token: s3cret", "x-github-event: ping", "content-type: application/json")
    bodies: tuple[Any, ...] = (
        {"ref": "refs/heads/main"},
        {"ref": ["x"]},
        [],
        "text",
        {"ref": "refs/tags/v1", "commits": [{}]},
    )
    return tuple(f"{head}\n\n{json.dumps(body)}".encode() for head in heads for body in bodies)


def _run(data: bytes) -> None:
    head, _, body = data.partition(b"\n\n")
    # As the server hands them on.
    lines = (line.partition(b":") for line in head.split(b"\n"))
    headers = {
        name.strip().lower().decode("latin-1"): value.strip().decode("latin-1") for name, _, value in lines
    }
    for secret in ("", "s3cret", "é"):
        judge(secret, "main", headers, body, read_json)


WEBHOOK = Target("webhook", "messages of a host of repositories", _seeds, mutate_bytes, _run)

"""What a host of repositories tells when something was pushed."""

import hmac
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class HookOutcome(StrEnum):
    """What a message is worth."""

    TRIGGERS = "triggers"
    IGNORED = "ignored"
    """About something else."""
    REFUSED = "refused"
    """Not from anyone who knows the secret."""


def judge(
    secret: str, ref: str, headers: Mapping[str, str], body: bytes, read: Callable[[bytes], Any]
) -> HookOutcome:
    """What to make of a POST.

    Header names are in lower case. With a `secret` the message must be signed with it, as GitHub, Gitea and
    Forgejo do (`X-Hub-Signature-256`), or name it, as GitLab does (`X-Gitlab-Token`). A message that names
    another ref than ours needs no sync. `read` takes JSON within limits, and raises ValueError beyond them.
    """
    if secret and not _knows(secret.encode(), headers, body):
        return HookOutcome.REFUSED
    if headers.get("x-github-event") == "ping":
        return HookOutcome.IGNORED
    try:
        message = read(body) if body else None
    except ValueError:
        return HookOutcome.TRIGGERS  # whoever it is says that something happened; looking costs little
    pushed = message.get("ref") if isinstance(message, dict) else None
    if not isinstance(pushed, str) or ref == "HEAD":
        return HookOutcome.TRIGGERS
    ours = {ref, f"refs/heads/{ref}", f"refs/tags/{ref}"}
    return HookOutcome.TRIGGERS if pushed in ours else HookOutcome.IGNORED


def _knows(secret: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    signature = headers.get("x-hub-signature-256")
    if signature is not None:
        expected = "sha256=" + hmac.new(secret, body, "sha256").hexdigest()
        return hmac.compare_digest(signature.encode(), expected.encode())
    return hmac.compare_digest(headers.get("x-gitlab-token", "").encode(), secret)

"""`koordpolicy comment`: one comment on the merge request that a job of CI runs for, edited by each run."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.flags.comment import TOKEN
from koordpolicy.cli.forges import MergeRequest
from koordpolicy.cli.forges.body import body_of, is_marked
from koordpolicy.cli.forges.github import PullRequest
from koordpolicy.cli.forges.gitlab import MergeRequestOfGitLab
from koordpolicy.cli.forges.requests import demand_token
from koordpolicy.cli.terminal import Terminal

_MOST: Final = 64 << 20
"""Bytes of a comment that are read; a difference of everything has far fewer."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Edit the comment of that name, or write the first."""
    text = _text(arguments.file, terminal)
    request = _merge_request(os.environ)
    body = body_of(text, arguments.about)
    earlier = next((one for one in request.own_comments() if is_marked(one.body, arguments.about)), None)
    if earlier is None:
        terminal.print(f"wrote  {request.create(body)}")
    elif earlier.body.strip() == body.strip():
        terminal.print(f"kept   {earlier.url}")
    else:
        terminal.print(f"edited {request.edit(earlier, body)}")
    return OK


def _merge_request(environment: Mapping[str, str]) -> MergeRequest:
    """What the job runs for."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return PullRequest(environment, demand_token(environment.get(TOKEN, ""), TOKEN))
    if environment.get("GITLAB_CI") == "true":
        return MergeRequestOfGitLab(environment, demand_token(environment.get(TOKEN, ""), TOKEN))
    raise CannotRunError(
        "this is no job of GitHub Actions or GitLab CI: neither GITHUB_ACTIONS nor GITLAB_CI is `true`"
    )


def _text(file: str, terminal: Terminal) -> str:
    try:
        if file == "-":
            found = terminal.read(_MOST + 1)
        else:
            with Path(file).open("rb") as opened:
                found = opened.read(_MOST + 1)
    except (OSError, ValueError) as error:
        raise CannotRunError(
            f"`{file}` cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(found) > _MOST:
        raise CannotRunError(f"`{file}` has more than {_MOST >> 20} MiB, which is no comment")
    text = found.decode("utf-8", "replace")
    if not text.strip():
        raise CannotRunError(f"`{file}` is empty, and an empty comment tells nothing")
    return text

"""What comments on merge requests where they are reviewed: one file a service, one for what they have in common.

Both speak the service's documented API with the standard library alone: an image of CI has Python, and often neither `gh`, nor `jq`,
nor `curl`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that stands there: the service's name for it, its Markdown, and where it is read."""

    id: str
    body: str
    url: str


class MergeRequest(Protocol):
    """A merge request, or pull request. Everything raises `CannotRunError` where the service does not do it."""

    def own_comments(self) -> Iterator[Comment]:
        """Those whose author is the account of the token, the oldest first."""
        ...

    def edit(self, comment: Comment, body: str) -> str:
        """Give a comment other Markdown; where it is read."""
        ...

    def create(self, body: str) -> str:
        """Write a new one; where it is read."""
        ...

"""Comments on a pull request of GitHub, by its GraphQL API: that alone says of any token which comments are its own."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.forges import Comment
from koordpolicy.cli.forges.requests import MOST_PAGES, ApiClient

_COMMENTS: Final = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      id
      comments(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id body url viewerDidAuthor }
      }
    }
  }
}
"""
_EDIT: Final = """
mutation($id: ID!, $body: String!) {
  updateIssueComment(input: {id: $id, body: $body}) { issueComment { url } }
}
"""
_CREATE: Final = """
mutation($id: ID!, $body: String!) {
  addComment(input: {subjectId: $id, body: $body}) { commentEdge { node { url } } }
}
"""


class PullRequest:
    """The pull request that a job runs for."""

    def __init__(self, environment: Mapping[str, str], token: str) -> None:
        """By the variables of GitHub Actions. Raises `CannotRunError`."""
        self._service = ApiClient("GitHub", {"Authorization": f"Bearer {token}"})
        self._url = environment.get("GITHUB_GRAPHQL_URL") or "https://api.github.com/graphql"
        owner, _, name = environment.get("GITHUB_REPOSITORY", "").partition("/")
        self._which = {"owner": owner, "name": name, "number": _number(environment)}
        self._id = ""

    def own_comments(self) -> Iterator[Comment]:
        """Those of the token's account, the oldest first."""
        after = None
        for _ in range(MOST_PAGES):
            request = self._pull_request(after)
            comments = self._service.told(request, "comments")
            for one in self._service.listed(self._service.told(comments, "nodes")):
                if one.get("viewerDidAuthor") is True:
                    yield Comment(
                        str(self._service.told(one, "id")), str(one.get("body")), str(one.get("url"))
                    )
            if self._service.told(comments, "pageInfo", "hasNextPage") is not True:
                return
            after = self._service.told(comments, "pageInfo", "endCursor")

    def edit(self, comment: Comment, body: str) -> str:
        """Give a comment other Markdown; where it is read."""
        done = self._ask(_EDIT, {"id": comment.id, "body": body})
        return str(self._service.told(done, "updateIssueComment", "issueComment", "url"))

    def create(self, body: str) -> str:
        """Write a new one; where it is read."""
        if not self._id:
            self._pull_request(None)
        done = self._ask(_CREATE, {"id": self._id, "body": body})
        return str(self._service.told(done, "addComment", "commentEdge", "node", "url"))

    def _pull_request(self, after: str | None) -> Any:
        found = self._ask(_COMMENTS, {**self._which, "after": after})
        request = self._service.told(found, "repository", "pullRequest")
        self._id = str(self._service.told(request, "id"))
        return request

    def _ask(self, query: str, variables: Mapping[str, Any]) -> Any:
        answer, _ = self._service.ask("POST", self._url, {"query": query, "variables": variables})
        errors = answer.get("errors") if isinstance(answer, dict) else None
        if errors:
            said = "; ".join(str(one.get("message")) for one in self._service.listed(errors)[:3])
            raise CannotRunError(
                f"GitHub refuses: {said}; the token wants `pull-requests: write` in `permissions`, and pull requests of forks get"
                " none that may write"
            )
        return self._service.told(answer, "data")


def _number(environment: Mapping[str, str]) -> int:
    """The number of the pull request, as the event that started the job says it."""
    file = environment.get("GITHUB_EVENT_PATH", "")
    try:
        event = json.loads(Path(file).read_bytes()) if file else None
    except (OSError, ValueError, RecursionError) as error:
        raise CannotRunError(f"the event of the job, `{file}`, cannot be read: {error}") from None
    request = event.get("pull_request") if isinstance(event, dict) else None
    number = request.get("number") if isinstance(request, dict) else None
    if not isinstance(number, int):
        raise CannotRunError("this job is none of a pull request: run it `on: pull_request`")
    return number

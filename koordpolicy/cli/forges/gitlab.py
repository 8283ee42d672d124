"""Comments on a merge request of GitLab, which calls them notes, by its REST API."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.forges import Comment
from koordpolicy.cli.forges.requests import MOST_PAGES, ApiClient

_A_PAGE: Final = 100


class MergeRequestOfGitLab:
    """The merge request that a job runs for."""

    def __init__(self, environment: Mapping[str, str], token: str) -> None:
        """By the variables of GitLab CI. Raises `CannotRunError`."""
        self._service = ApiClient(
            "GitLab", {"PRIVATE-TOKEN": token}, environment.get("CI_SERVER_TLS_CA_FILE", "")
        )
        self._api = environment.get("CI_API_V4_URL", "").rstrip("/")
        # In a pipeline of a fork CI_PROJECT_ID is the fork, where there is no such merge request.
        project = environment.get("CI_MERGE_REQUEST_PROJECT_ID") or environment.get("CI_PROJECT_ID", "")
        number = environment.get("CI_MERGE_REQUEST_IID", "")
        if not (self._api and project and number):
            raise CannotRunError(
                'this job is none of a merge request: run it by a rule `if: $CI_PIPELINE_SOURCE == "merge_request_event"`'
            )
        path = f"{self._api}/projects/{quote(project, safe='')}/merge_requests/{quote(number, safe='')}"
        self._notes = f"{path}/notes"
        base = environment.get("CI_MERGE_REQUEST_PROJECT_URL", "").rstrip("/")
        self._page = f"{base}/-/merge_requests/{number}" if base else path

    def own_comments(self) -> Iterator[Comment]:
        """Those of the token's account, the oldest first."""
        account, _ = self._service.ask("GET", f"{self._api}/user")
        me = self._service.told(account, "id")
        for page in range(1, MOST_PAGES + 1):
            notes, said = self._service.ask(
                "GET", f"{self._notes}?sort=asc&order_by=created_at&per_page={_A_PAGE}&page={page}"
            )
            for one in self._service.listed(notes):
                if not one.get("system") and self._service.told(one, "author", "id") == me:
                    yield self._comment(one)
            # A page may have fewer where some are not for this account; a proxy may leave the header out.
            following = said.get("X-Next-Page")
            if not (len(notes) >= _A_PAGE if following is None else following):
                return

    def edit(self, comment: Comment, body: str) -> str:
        """Give a note other Markdown; where it is read."""
        self._service.ask("PUT", f"{self._notes}/{quote(comment.id, safe='')}", {"body": body})
        return comment.url

    def create(self, body: str) -> str:
        """Write a new one; where it is read."""
        note, _ = self._service.ask("POST", self._notes, {"body": body})
        return self._comment(note).url

    def _comment(self, note: Any) -> Comment:
        number = str(self._service.told(note, "id"))
        return Comment(number, str(self._service.told(note, "body")), f"{self._page}#note_{number}")

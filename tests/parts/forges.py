"""GitHub and GitLab on loopback, as far as comments go: what is documented of their APIs, paging, rights and accounts included.

Neither is to be had here. What they let a token do they let it do here, too, so that only the client's care keeps comments of others
as they are: GitHub lets a token that may write edit anybody's.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

OURS = "secret-of-ours"
READ_ONLY = "secret-that-reads"
ACCOUNTS = {OURS: "us", READ_ONLY: "us", "secret-of-others": "others"}
"""Tokens, and whose they are."""

_LONGEST = {"github": 65_536, "gitlab": 1_000_000}
_A_PAGE = 100
Answer = tuple[int, Any, dict[str, str]]


@dataclass
class Forge:
    """A service with one merge request, number 7; `comments` is what stands there, by account and Markdown."""

    service: str
    url: str = ""
    comments: list[dict[str, str]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """Each request: method and path."""
    elsewhere: str = ""
    """Where every request is sent on to instead."""

    def variables(self, folder: Path) -> dict[str, str]:
        """What the service's runner says to a job of that merge request."""
        if self.service == "github":
            event = folder / "event.json"
            event.write_text(json.dumps({"number": 7, "pull_request": {"number": 7}}), encoding="utf-8")
            return {
                "GITHUB_ACTIONS": "true",
                "GITHUB_GRAPHQL_URL": f"{self.url}/graphql",
                "GITHUB_REPOSITORY": "shop/policies",
                "GITHUB_EVENT_PATH": str(event),
            }
        return {
            "GITLAB_CI": "true",
            "GITHUB_ACTIONS": "",
            "CI_API_V4_URL": f"{self.url}/api/v4",
            "CI_PROJECT_ID": "99",  # a fork
            "CI_MERGE_REQUEST_PROJECT_ID": "3",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example.org/shop/policies",
        }

    def answer(self, method: str, target: str, headers: Mapping[str, str], given: Any) -> Answer:
        self.seen.append(f"{method} {target}")
        if self.elsewhere:
            return 302, {}, {"Location": self.elsewhere}
        if self.service == "github":
            token = headers.get("Authorization", "").removeprefix("Bearer ")
        else:
            token = headers.get("PRIVATE-TOKEN", "")
        if token not in ACCOUNTS:
            return 401, {"message": "Bad credentials"}, {}
        if given is not None and len(str(_body(given))) > _LONGEST[self.service]:
            return 422, {"message": "body is too long"}, {}
        return (
            self._github(token, given)
            if self.service == "github"
            else self._gitlab(method, target, token, given)
        )

    def _github(self, token: str, given: Any) -> Answer:
        query, said = given["query"], given["variables"]
        if query.strip().startswith("mutation") and token == READ_ONLY:
            refused = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
            return 200, {"data": None, "errors": [refused]}, {}
        if "updateIssueComment" in query:
            self.comments[int(said["id"].removeprefix("IC_"))]["body"] = said["body"]
            return (
                200,
                {"data": {"updateIssueComment": {"issueComment": {"url": f"{self.url}/7#{said['id']}"}}}},
                {},
            )
        if "addComment" in query:
            assert said["id"] == "PR_7"
            self.comments.append({"account": ACCOUNTS[token], "body": said["body"]})
            node = {"url": f"{self.url}/7#IC_{len(self.comments) - 1}"}
            return 200, {"data": {"addComment": {"commentEdge": {"node": node}}}}, {}
        assert (said["owner"], said["name"], said["number"]) == ("shop", "policies", 7)
        begin = int(said["after"] or 0)
        shown = self.comments[begin : begin + _A_PAGE]
        nodes = [
            {
                "id": f"IC_{begin + at}",
                "body": one["body"],
                "url": f"{self.url}/7#IC_{begin + at}",
                "viewerDidAuthor": one["account"] == ACCOUNTS[token],
            }
            for at, one in enumerate(shown)
        ]
        more = begin + _A_PAGE < len(self.comments)
        page = {"hasNextPage": more, "endCursor": str(begin + _A_PAGE) if more else None}
        request = {"id": "PR_7", "comments": {"pageInfo": page, "nodes": nodes}}
        return 200, {"data": {"repository": {"pullRequest": request}}}, {}

    def _gitlab(self, method: str, target: str, token: str, given: Any) -> Answer:
        parts = urlsplit(target)
        if (method, parts.path) == ("GET", "/api/v4/user"):
            return 200, {"id": ACCOUNTS[token], "username": "bot"}, {}
        notes = "/api/v4/projects/3/merge_requests/7/notes"
        if not parts.path.startswith(notes):
            return 404, {"message": "404 Not found"}, {}
        if method == "GET":
            asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            size, page = int(asked.get("per_page", 20)), int(asked.get("page", 1))
            shown = list(enumerate(self.comments))
            if (asked.get("sort"), asked.get("order_by", "created_at")) != ("asc", "created_at"):
                shown.reverse()
            more = page * size < len(shown)
            listed = [self._note(number) for number, _ in shown[(page - 1) * size : page * size]]
            return 200, listed, {"X-Next-Page": str(page + 1) if more else ""}
        if token == READ_ONLY:
            return 403, {"error": "insufficient_scope"}, {}
        if method == "PUT":
            number = int(parts.path.rpartition("/")[2])
            self.comments[number]["body"] = given["body"]
            return 200, self._note(number), {}
        self.comments.append({"account": ACCOUNTS[token], "body": given["body"]})
        return 201, self._note(len(self.comments) - 1), {}

    def _note(self, number: int) -> dict[str, Any]:
        one = self.comments[number]
        return {"id": number, "body": one["body"], "author": {"id": one["account"]}, "system": False}


def _body(given: Any) -> Any:
    return given.get("body") or given.get("variables", {}).get("body") or ""


@contextmanager
def serving(service: str) -> Iterator[Forge]:
    """`github` or `gitlab` on loopback."""
    forge = Forge(service)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            given = json.loads(self.rfile.read(length)) if length else None
            status, body, headers = forge.answer(
                self.command, self.path, cast("Mapping[str, str]", self.headers), given
            )
            text = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PUT = do_GET  # noqa: N815 - as the library calls them

        def log_message(self, format: str, *args: object) -> None:
            """Requests are nobody's news."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        forge.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield forge
        finally:
            server.shutdown()
            thread.join()

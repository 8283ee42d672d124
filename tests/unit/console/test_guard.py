"""Only our own page is answered."""

import asyncio

import pytest

from koordpolicy.console.guard import Guard
from koordpolicy.runtime.http.routing import JSON, Request, Response

OURS = {"host": "127.0.0.1:9330"}


def status(method: str, headers: dict[str, str], host: str = "127.0.0.1", path: str = "/api/state") -> int:
    answer = Guard(host).before(lambda _: Response())(Request(method, path, {}, headers, b""))
    assert not isinstance(answer, Response)

    async def waited() -> Response:
        return await answer

    return asyncio.run(waited()).status


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", OURS, 200),
        ("GET", {"host": "localhost:9330"}, 200),
        ("GET", {"host": "[::1]:9330"}, 200),
        ("GET", {"host": "localhost"}, 200),
        ("GET", {"host": "rebound.example:9330"}, 421),
        ("GET", {"host": "127.0.0.1.example"}, 421),
        ("GET", {}, 421),
        ("GET", OURS | {"origin": "https://elsewhere.example"}, 403),
        ("GET", OURS | {"origin": "null"}, 403),
        ("GET", OURS | {"origin": "http://127.0.0.1:9331"}, 403),
        ("GET", OURS | {"sec-fetch-site": "cross-site"}, 403),
        ("GET", OURS | {"sec-fetch-site": "same-site"}, 403),
        ("GET", OURS | {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:9330"}, 200),
        ("POST", OURS, 415),
        ("POST", OURS | {"content-type": "text/plain"}, 415),
        ("POST", OURS | {"content-type": f"{JSON}; charset=utf-8"}, 200),
        ("POST", OURS | {"content-type": JSON, "origin": "http://elsewhere.example"}, 403),
    ],
)
def test_whom_it_answers(method: str, headers: dict[str, str], expected: int) -> None:
    assert status(method, headers) == expected


def test_a_link_from_elsewhere_opens_the_page_alone() -> None:
    elsewhere = OURS | {"sec-fetch-site": "cross-site"}
    assert status("GET", elsewhere, path="/") == 200
    assert status("GET", elsewhere, path="/api/world") == 403


def test_a_host_that_is_named_is_answered() -> None:
    assert status("GET", {"host": "console.example:9330"}, host="console.example") == 200

"""The audit log: pages, readers, and what it forgets."""

import asyncio
import json
from itertools import count

import pytest

from koordpolicy.agent.audit.log import (
    MOST_READERS,
    READERS_LIVE,
    AuditEvent,
    AuditLevel,
    AuditLog,
    AuditSubject,
    UnknownReader,
)
from koordpolicy.agent.audit.route import events_route
from koordpolicy.runtime.http import Request, Response


class Site:
    def __init__(self, most_bytes: int = 1 << 20, verbosity: AuditLevel = AuditLevel.WRITE) -> None:
        self.now = 0
        numbers = count(1)
        self.log = AuditLog(
            most_bytes, lambda: self.now, lambda: f"token-{next(numbers)}", verbosity=verbosity
        )

    def add(self, *names: str, level: AuditLevel = AuditLevel.WRITE) -> None:
        for name in names:
            self.log.add(AuditEvent(0, level, AuditSubject.GROUP, "cpuset", "to 0-3", name=name))

    def page(self, size: int, token: str = "") -> tuple[list[str], str]:
        lines, following = self.log.page(size, token)
        return [json.loads(line)["name"] for line in lines], following

    def ask(self, accept: str = "", **query: str) -> Response:
        route = events_route(self.log)

        async def answered() -> Response:
            return await route.answer(Request("GET", "/events", query, {"accept": accept}, b""))

        return asyncio.run(answered())


def test_pages_go_from_the_newest_to_the_oldest_and_end() -> None:
    site = Site()
    site.add("a", "b", "c", "d", "e")
    first, token = site.page(2)
    site.add("f")  # comes too late for a reader that has begun
    second, token = site.page(2, token)
    third, end = site.page(2, token)
    assert (first, second, third, end) == (["e", "d"], ["c", "b"], ["a"], "")
    assert site.page(10) == (["f", "e", "d", "c", "b", "a"], "")


def test_memory_is_bounded_and_readers_do_not_trip_over_what_went() -> None:
    site = Site(most_bytes=600)
    site.add(*"abcdefgh")
    kept = len(site.log)
    assert 0 < kept < 8
    _, token = site.page(1)
    site.add(*(f"later{number}" for number in range(20)))
    assert site.page(10, token) == ([], "")


def test_old_and_supernumerary_readers_have_to_begin_anew() -> None:
    site = Site()
    site.add(*"abcdefgh")
    tokens = [site.page(1)[1] for _ in range(MOST_READERS + 1)]
    with pytest.raises(UnknownReader):
        site.page(1, tokens[0])
    assert site.page(1, tokens[1])[0] == ["g"]
    with pytest.raises(UnknownReader):
        site.page(1, tokens[1])  # each token serves once
    site.now += READERS_LIVE + 1
    with pytest.raises(UnknownReader):
        site.page(1, tokens[2])


def test_what_matters_too_little_is_left_out() -> None:
    site = Site(verbosity=AuditLevel.SUPPRESSION)
    site.add("write")
    site.add("eviction", level=AuditLevel.EVICTION)
    assert site.page(9)[0] == ["eviction"]


def test_over_http() -> None:
    site = Site()
    site.add(*"abc")
    answer = json.loads(site.ask("application/json", size="2").body)
    assert [event["name"] for event in answer["Events"]] == ["c", "b"]
    lines = site.ask(pageToken=answer["NextPageToken"])
    assert (json.loads(lines.body)["name"], lines.headers) == ("a", {})
    assert site.ask(size="2").headers["Next-Page-Token"]
    assert [site.ask(**query).status for query in ({"size": "2049"}, {"size": "x"}, {"pageToken": "x"})] == [
        400,
        400,
        409,
    ]
    unknown = site.ask(limit="2")
    assert (unknown.status, unknown.body) == (
        400,
        b"there is no parameter 'limit': an address takes size and pageToken\n",
    )

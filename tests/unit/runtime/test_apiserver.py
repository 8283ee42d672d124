"""What the answers to requests tell of the API server."""

import asyncio
import logging

import pytest

from koordpolicy.runtime.apiserver import CONDITION, ServerSight, follow
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import Readiness
from koordpolicy.runtime.requests import RequestCounts
from tests.unit.runtime.scenes import running, until
from tests.virtual_time import run

GONE = "the API server does not answer"
UNKNOWN = "the API server does not know us (401)"
LEASE = "leases.coordination.k8s.io"

Answer = tuple[str, str, int]

CASES: tuple[tuple[str, list[Answer], str], ...] = (
    ("all is well", [("list", "nodes", 200), ("bind", "pods", 201)], ""),
    ("silence", [("list", "nodes", 200), ("update", LEASE, 0)], GONE),
    ("silence, then an answer", [("update", LEASE, 0), ("update", LEASE, 409)], ""),
    ("not known", [("list", "nodes", 401)], UNKNOWN),
    ("it fails", [("list", "nodes", 500), ("get", "pods", 503)], "the API server fails (HTTP 503)"),
    ("it fails on one of many", [("bind", "pods", 500), ("bind", "pods", 201)], ""),
    ("forbidden to list", [("list", "nodes", 403)], "the API server does not let us list nodes (403)"),
    (
        "forbidden, perhaps for a moment",
        [("list", "nodes", 403)],
        "If it lasts, apply those of `deploy/rbac`",
    ),
    ("forbidden, then allowed", [("watch", "nodes", 403), ("watch", "nodes", 200)], ""),
    ("forbidden one, allowed another", [("list", "nodes", 403), ("list", "pods", 200)], "let us list nodes"),
    ("two are forbidden", [("list", "pods", 403), ("list", "nodes", 403)], "list nodes and 1 more (403)"),
    ("the lease is forbidden", [("update", LEASE, 403)], f"let us update {LEASE}"),
    ("a pod is refused", [("bind", "pods", 403), ("create", "pods", 403), ("evict", "pods", 429)], ""),
    (
        "reports are forbidden",
        [("list", "policyrevisions.koordpolicy.io", 403), ("create", "events", 403)],
        "",
    ),
    ("who is there is forbidden", [("list", LEASE, 403)], ""),
    ("a watch has ended", [("watch", "pods", 0), ("update", LEASE, 200)], "not watched: pods"),
    (
        "two watches have ended",
        [("watch", "pods", 0), ("watch", "nodes", 503), ("update", LEASE, 200)],
        "not watched: nodes and 1 more",
    ),
    ("a watch is back", [("watch", "pods", 0), ("list", "pods", 200), ("watch", "pods", 200)], ""),
    ("its kind is gone", [("watch", "pods", 500), ("watch", "pods", 404)], ""),
    ("a version is too old", [("watch", "pods", 410), ("list", "pods", 200)], ""),
    (
        "a watch of reports has ended",
        [("watch", "policyrevisions.koordpolicy.io", 0), ("update", LEASE, 200)],
        "",
    ),
    ("nothing of that kind", [("list", "devices.scheduling.koordinator.sh", 404)], ""),
)


@pytest.mark.parametrize(("answers", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_wrong(answers: list[Answer], why: str) -> None:
    now = [100.0]
    sight = ServerSight(RequestCounts(Metrics("test")), lambda: now[0])
    for verb, resource, status in answers:
        sight.add(verb, resource, status, 0.01)
        assert sight.trouble(30.0) == "", "trouble has time to pass"
    now[0] += 30.0
    assert why in sight.trouble(30.0)
    assert bool(sight.trouble(30.0)) == bool(why)


LATER: tuple[tuple[str, list[Answer], str], ...] = (
    ("nothing that etcd keeps", [("watch", "pods", 200), ("update", LEASE, 500)], "no reads and writes (last: HTTP 500), for 3"),
    ("nothing comes in time", [("update", LEASE, 0), ("watch", "pods", 200)], "no reads and writes (last: none), for 3"),
    ("reviews are answered", [("list", "pods", 504), ("create", "tokenreviews.authentication.k8s.io", 201)], "HTTP 504"),
    ("so is discovery", [("get", "/version", 200), ("update", LEASE, 500)], "HTTP 500"),
    ("refused before etcd is asked", [("update", LEASE, 500), ("patch", "nodes", 403)], "HTTP 500"),
    ("put off before etcd is asked", [("update", LEASE, 500), ("patch", "nodes", 429)], "HTTP 500"),
    ("another write is taken", [("watch", "pods", 200), ("bind", "pods", 500), ("update", LEASE, 200)], ""),
    ("a kind that is not served", [("update", LEASE, 0), ("list", "podgroups.scheduling.k8s.io", 404)], "last: none"),
    ("what nobody may write", [("update", LEASE, 500), ("create", "pods", 422)], "HTTP 500"),
    ("another was quicker", [("bind", "pods", 500), ("update", LEASE, 409), ("watch", "pods", 200)], ""),
    ("only a watch is away for a moment", [("watch", "pods", 0), ("watch", "pods", 200)], ""),
)  # fmt: skip
"""What is answered each 10 s, and what is said of it after 30 s."""


@pytest.mark.parametrize(("answers", "why"), [case[1:] for case in LATER], ids=[case[0] for case in LATER])
def test_a_server_that_only_watches_is_not_ready(answers: list[Answer], why: str) -> None:
    now = [0.0]
    sight = ServerSight(RequestCounts(Metrics("test")), lambda: now[0])
    for now[0] in (0.0, 10.0, 20.0, 30.0):
        assert sight.trouble(30.0) == ""
        for verb, resource, status in answers:
            sight.add(verb, resource, status, 0.01)
    # The trouble is as old as the first failure and not hidden by what is answered last.
    assert why in sight.trouble(30.0)
    assert bool(sight.trouble(30.0)) == bool(why)
    sight.add("update", LEASE, 200, 0.01)
    sight.add("watch", "pods", 200, 0.01)
    assert sight.trouble(30.0) == "", "it is over at once"


def test_a_write_that_failed_once_is_no_outage() -> None:
    """Agents write once a minute: what follows a failure tells, not how long nothing does."""
    now = [0.0]
    sight = ServerSight(RequestCounts(Metrics("test")), lambda: now[0])
    for now[0] in (0.0, 2.0):
        sight.add("patch", "nodemetrics.slo.koordinator.sh", 500, 0.01)
    sight.add("watch", "pods", 200, 0.01)
    now[0] = 59.0
    assert sight.trouble(30.0) == ""
    now[0] = 60.0
    sight.add("patch", "nodemetrics.slo.koordinator.sh", 500, 0.01)
    sight.add("watch", "pods", 200, 0.01)
    assert "no reads and writes" in sight.trouble(30.0)


def test_the_condition_follows() -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        readiness = Readiness(metrics)
        sight = ServerSight(RequestCounts(metrics), asyncio.get_running_loop().time)
        async with running(follow(sight, readiness, 0.1)):
            await until(lambda: metrics.value("koordpolicy_ready", condition=CONDITION) == 1)
            sight.add("update", LEASE, 0, 5.0)
            await until(lambda: GONE in readiness.missing.get(CONDITION, ""))
            assert metrics.value("koordpolicy_ready", condition=CONDITION) == 0
            sight.add("update", LEASE, 200, 0.01)
            await until(lambda: not readiness.missing)

    asyncio.run(scene())


def test_it_is_not_ready_again_before_watches_run(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        metrics = Metrics("test")
        readiness = Readiness(metrics)
        sight = ServerSight(RequestCounts(metrics), asyncio.get_running_loop().time)
        async with running(follow(sight, readiness, 0.1)):
            for resource in ("pods", "nodes"):
                sight.add("watch", resource, 0, 0.1)
            await until(lambda: GONE in readiness.missing.get(CONDITION, ""))
            sight.add("update", LEASE, 200, 0.01)
            await until(lambda: "not watched: nodes and 1 more" in readiness.missing.get(CONDITION, ""))
            sight.add("watch", "nodes", 200, 0.01)
            await until(lambda: "not watched: pods" in readiness.missing.get(CONDITION, ""))
            sight.add("watch", "pods", 200, 0.01)
            await until(lambda: not readiness.missing)

    caplog.set_level(logging.INFO)
    asyncio.run(scene())
    said = [record.getMessage() for record in caplog.records if record.name.endswith("apiserver")]
    assert "watches have ended: nodes and 1 more" in said
    assert said.index("all watches run again") > said.index("watches have ended: nodes and 1 more")


WAKING: tuple[tuple[str, float, list[Answer], bool], ...] = (
    ("the server is back", 60.0, [("update", LEASE, 200)], True),
    ("it is back and does not let us", 60.0, [("list", "pods", 403)], True),
    ("it is back and does not know us", 60.0, [("list", "pods", 401)], False),
    ("it is still away", 60.0, [("update", LEASE, 0)], False),
    ("one of many requests fails", 0.5, [("update", LEASE, 200)], False),
)


@pytest.mark.parametrize(
    ("seconds", "answers", "early"), [case[1:] for case in WAKING], ids=[case[0] for case in WAKING]
)
def test_who_waits_is_woken_when_a_server_that_was_away_answers(
    seconds: float, answers: list[Answer], early: bool
) -> None:
    async def scene() -> None:
        clock = asyncio.get_running_loop().time
        sight = ServerSight(RequestCounts(Metrics("test")), clock)
        began = clock()
        waiting = [asyncio.create_task(sight.sleep(100.0)) for _ in range(3)]
        sight.add("watch", "pods", 0, 0.1)
        await asyncio.sleep(seconds)
        for verb, resource, status in answers:
            sight.add(verb, resource, status, 0.1)
        assert await asyncio.gather(*waiting) == [early] * 3
        assert clock() - began == pytest.approx(seconds if early else 100.0)
        began = clock()
        assert await sight.sleep(100.5) is early, "what was asked while it was away fails afterwards"
        assert clock() - began == (1.5 if early else 100.5)
        await asyncio.sleep(10.0)
        assert await sight.sleep(7.0) is False, "once awake, nobody is woken again"

    run(scene())


def test_what_the_server_puts_off_is_told_on_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """One that takes nothing of a kind is told of, once, and so is its end; budgets of evictions are no such thing."""
    now = 0.0
    metrics = Metrics("scheduler")
    sight = ServerSight(RequestCounts(metrics), lambda: now)

    def answers(*statuses: tuple[str, int]) -> None:
        for verb, status in statuses:
            sight.add(verb, "pods", status, 0.01)

    answers(("bind", 429), ("evict", 429), ("patch", 429), ("patch", 200))
    assert sight.put_off(30.0) == ()
    now = 31.0
    answers(("bind", 429), ("bind", 0), ("list", 200))
    assert sight.put_off(30.0) == ("bind pods",)
    assert sight.trouble(30.0) == ""

    late: list[str] = []

    async def scene() -> None:
        readiness = Readiness(metrics)
        async with running(follow(sight, readiness, 30.0, late.append)):
            await asyncio.sleep(3)
            answers(("bind", 201))
            await asyncio.sleep(3)
            assert readiness.missing == {}

    with caplog.at_level(logging.INFO, "koordpolicy"):
        run(scene())
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "puts off every request to bind pods (429)" in told[0]
    assert late == ["bind pods"]  # once
    assert told[1] == "the API server takes requests to bind pods again"

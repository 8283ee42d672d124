"""What the answers to requests tell of the API server."""

import asyncio

import pytest

from koordpolicy.runtime.apiserver import CONDITION, ServerSight, follow
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import Readiness
from koordpolicy.runtime.requests import RequestCounts
from tests.unit.runtime.scenes import running, until

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

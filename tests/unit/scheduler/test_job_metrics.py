"""What is counted of gangs and quotas, as koord-scheduler's dashboards have it."""

import asyncio
from typing import Any

import pytest

from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.scheduler.job_metrics import JobMetrics, size_text
from tests.unit.scheduler.test_gang_room import Crowded
from tests.unit.scheduler.test_quotas import Cluster, of, quota

_ROUND = "scheduler_gang_schedule_cycle_duration_seconds"


def looked(world: Any) -> Metrics:
    scheduler, metrics = world.scheduler, Metrics("scheduler")
    shown = JobMetrics(metrics, lambda: scheduler.gangs, lambda: scheduler.cache.state.quotas)
    asyncio.run(shown.look())
    return metrics


@pytest.mark.parametrize(
    ("pods", "said"),
    [(0, "0"), (1, "1-100"), (100, "1-100"), (101, "101-200"), (1000, "901-1000"), (1001, "1000+")],
)
def test_jobs_by_size(pods: int, said: str) -> None:
    assert size_text(pods) == said


def test_rounds_and_searches_are_counted_once() -> None:
    world = Crowded()
    world.fill({"n0": {"cpu": 4, "pods": {"v0": {"cpu": 2}}}})
    world.gang({"a": 2, "b": 2})
    world.decide()
    metrics = looked(world)
    failed = {"reason": "all pending pods is already been attempted", "job_size": "1-100"}
    assert metrics.value(_ROUND, **failed) == 1
    assert metrics.value("scheduler_job_preemption_duration_seconds", result="success") == 1
    assert metrics.value("koordpolicy_scheduler_gang_rounds") is None, "it waits"
    assert world.scheduler.plugins["Coscheduling"]["mostRounds"] == 1
    world.go("v0")
    world.pass_time(60)
    assert world.decide() == ["a", "b"]
    metrics = looked(world)
    assert metrics.value("koordpolicy_scheduler_gang_rounds") == 1
    rounds = metrics.registry.get_sample_value("koordpolicy_scheduler_gang_rounds_sum")
    assert rounds == 2, "one gang, in its second round"
    assert metrics.value(_ROUND, **failed) is None, "it was taken up before"
    assert metrics.value(_ROUND, reason="gang is already succeed", job_size="1-100") == 1


def test_gangs_whose_pods_wait_on_nodes() -> None:
    world = Crowded()
    world.fill({"n0": {"cpu": 4}})
    world.gang({"a": 2, "b": 2})
    world.scheduler.schedule_next()
    assert looked(world).value("scheduler_waiting_gang_group_number") == 1
    world.decide()
    assert looked(world).value("scheduler_waiting_gang_group_number") == 0


def test_how_quotas_stand() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="2", max="4")
    for at in range(5):
        world.submit(f"p{at}", of("team"))
    world.decided()
    metrics = looked(world)
    labels = {
        "name": "team",
        "resource": "cpu",
        "tree": "",
        "is_parent": "false",
        "parent": "koordinator-root-quota",
    }
    fields = {"min": 2000, "max": 4000, "sharedWeight": 4000, "used": 4000, "request": 5000, "child-request": 5000, "runtime": 4000}  # fmt: skip
    assert {
        field: metrics.value("scheduler_elastic_quota_status", **labels, field=field) for field in fields
    } == fields

"""How long decisions take, and the rules that are told of because they are slow."""

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import pytest

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS
from koordpolicy.runtime.clock import processor_ns
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.reports.troubles import Troubles
from koordpolicy.scheduler.decision_times import DecisionTimes, SlowRules
from koordpolicy.scheduler.scheduler import Scheduler
from tests.unit.scheduler import test_loop
from tests.unit.scheduler.world import START, World, pod, policies

_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
SLOW = {
    "filters": [
        {
            "name": "own",
            "require": {
                "cel": f"{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, a * b * c * size(node.name) > 0)))"
            },
        }
    ]
}


def _troubles() -> Troubles:
    metrics = Metrics("scheduler")
    recorder = Recorder(
        MemoryCluster(Store(lambda: 0)),
        component="scheduler",
        instance="s1",
        now_ns=lambda: START,
        backoff=Backoff(lambda: 0.0),
    )
    live = LivePolicies(FixedSource("memory"), metrics)
    return Troubles(metrics, live, recorder, leads=lambda: True, now=lambda: START)


def _world(limit: str, nodes: int = 300) -> World:
    world = World(policies(SLOW, {"diagnosis": {"slowDecision": limit}}))
    world.build({"nodes": {f"n{at}": {} for at in range(nodes)}})
    return world


def _rules(scheduler: Scheduler, clock: Callable[[], int] = processor_ns) -> SlowRules:
    """What has seen the first decision of its scheduler, which counts for nothing."""
    rules = SlowRules(scheduler, _troubles(), clock)
    rules.decided(pod("p"), 5.0)
    return rules


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_a_slow_filter_is_told_of_with_its_place_and_what_it_takes(caplog: pytest.LogCaptureFixture) -> None:
    rules = _rules(_world("1ms").scheduler)
    assert not _told(caplog), "the first decision makes what the others find"
    rules.decided(pod("p"), 5.0)
    (own,) = [line for line in _told(caplog) if "filter `own`" in line]
    head, _, tail = own.partition(": ")
    assert head == "SchedulingProfile/koord-scheduler is decided slowly, first for pod default/p"
    assert tail.startswith("filter `own` (")
    assert tail.endswith(" ms of a decision on 300 nodes")
    before = len(caplog.records)
    rules.decided(pod("p"), 5.0)
    assert len(caplog.records) == before, "measuring rests"


def test_policy_says_what_is_slow(caplog: pytest.LogCaptureFixture) -> None:
    for limit, seconds in (("0s", 5.0), ("2s", 1.9)):
        _rules(_world(limit).scheduler).decided(pod("p"), seconds)
    assert not _told(caplog)


def test_rules_are_not_to_blame_for_a_slow_machine(caplog: pytest.LogCaptureFixture) -> None:
    ticks = count(1)
    _rules(_world("1ms").scheduler, lambda: next(ticks)).decided(pod("p"), 5.0)
    _rules(_world("1ms", 0).scheduler).decided(pod("p"), 5.0)
    assert not _told(caplog)


def test_decisions_are_counted_by_time() -> None:
    metrics = Metrics("scheduler")
    times = DecisionTimes(metrics)
    for seconds in (0.0002, 0.0002, 100.0):
        times.add(seconds)
    assert metrics.value("koordpolicy_scheduler_decision_seconds") == 3
    text = metrics.text().decode()
    assert 'koordpolicy_scheduler_decision_seconds_bucket{le="0.00025"} 2.0' in text


def test_others_have_time_between_slow_decisions() -> None:
    async def run() -> None:
        world = test_loop.World(test_loop._always)
        world.store.create(NODES, test_loop.node("n0"))
        for at in range(3):
            world.store.create(PODS, test_loop.pod(f"p{at}"), namespace="default")
        turns, seen = 0, []

        def slow(*_: Any) -> None:
            seen.append(turns)
            time.sleep(0.15)

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        world.scheduler.on_decided = slow
        beside = asyncio.create_task(other())
        await world.run_until(lambda: all(world.bound().values()))
        beside.cancel()
        assert len(seen) == 3
        assert min(then - before for before, then in pairwise(seen)) > 5

    asyncio.run(run())

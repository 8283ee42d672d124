"""Reports of many nodes at once help the pods that reports one by one would, in the same order."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.events import Event
from tests.unit.scheduler.world import World, metric, policies

GRAPH = policies()
NODES = tuple(f"n{at}" for at in range(6))


def busy(chance: random.Random) -> World:
    """Nodes that are too busy for most pods, and pods of few kinds, all of which have been tried."""
    world = World(GRAPH)
    for at, name in enumerate(NODES):
        said: dict[str, Any] = {"allocatable": {"cpu": str(chance.choice((4, 8, 12))), "memory": "64Gi"}}
        if chance.random() < 0.2:
            said["taints"] = ["kept=yes:NoSchedule"]
        said["labels"] = {"disk": chance.choice(("ssd", "hdd"))}
        said["metric"] = {"usage": {"cpu": chance.choice((1, 20)), "memory": "1Gi"}}
        there = {"priority": chance.choice((10, 9950)), "request": {"cpu": chance.choice((1, 3))}}
        world.build({"nodes": {name: {**said, "pods": {f"there{at}": there}}}})
    for at in range(24):
        asked: dict[str, Any] = {
            "request": {"cpu": chance.choice((2, 5, 9))},
            "priority": chance.choice((9100, 9500)),
        }
        if chance.random() < 0.2:
            asked["nodeSelector"] = {"disk": "ssd"}
        if chance.random() < 0.1:
            asked["preemptionPolicy"] = "Never"
        world.submit(f"p{at}", asked)
    told(world)
    return world


def told(world: World) -> list[tuple[str, str, str]]:
    found = []
    while (decision := world.scheduler.schedule_one()) is not None:
        found.append((decision.pod[1], decision.node, decision.message))
        assert len(found) < 1_000
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_reports_at_once_help_as_reports_one_by_one(seed: int) -> None:
    shown = []
    for at_once in (False, True):
        world = busy(random.Random(seed))
        for step in range(3):
            world.pass_time(20)
            told(world)
            chance = random.Random(seed + step)
            for name in NODES:
                usage = {"cpu": chance.choice((0, 3, 20)), "memory": "1Gi"}
                world.scheduler.cache.set_metric(metric(name, {"usage": usage}, world.now))
            if at_once:
                world.scheduler.reported(NODES)
            else:
                for name in NODES:
                    world.scheduler.happened(Event.METRIC_CHANGED, name)
            shown.append((at_once, step, world.scheduler.waiting, told(world)))
    one_by_one, together = ([one[1:] for one in shown if one[0] is at_once] for at_once in (False, True))
    assert one_by_one == together

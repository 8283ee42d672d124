"""Whatever fails while a pod is decided on takes that decision, and the pod comes again."""

from collections import Counter
from typing import Any

import pytest

from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.decision import PodDecision
from tests.unit.scheduler.world import START, node, pod, policies

_PODS = 6


class Hostage:
    """A clock, and a draw among equal nodes, that fail at one of their calls."""

    def __init__(self) -> None:
        self.now = START
        self.calls = 0
        self.fails_at = -1

    def clock(self) -> int:
        self._call()
        return self.now

    def draw(self, _count: int) -> int:
        self._call()
        return 0

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise ZeroDivisionError(f"call {self.calls}")


class World:
    """Nodes that are all alike, and pods that wait."""

    def __init__(self, *documents: Any) -> None:
        self.hostage = Hostage()
        spread = {"ties": "Random", "queue": {"confirmWithin": "1h"}}
        self.scheduler = Scheduler(
            policies(spread, *documents), self.hostage.clock, draw=self.hostage.draw, refusals=False
        )
        for at in range(3):
            self.scheduler.set_node(node(f"n{at}", {}))
        for at in range(_PODS):
            self.scheduler.set_pod(pod(f"p{at}"))

    def drain(self) -> list[PodDecision]:
        """Decide on all that is due, as the loop does; what fails beside a decision is tried again."""
        found: list[PodDecision] = []
        for _ in range(10 * _PODS):
            try:
                decision = self.scheduler.schedule_one()
            except ZeroDivisionError:
                continue
            if decision is None:
                return found
            found.append(decision)
        pytest.fail("there is no end")


def test_wherever_a_cycle_fails_no_pod_is_lost() -> None:
    counted = World()
    before = counted.hostage.calls
    assert all(decision.placed for decision in counted.drain())
    calls = counted.hostage.calls - before
    assert calls > 3 * _PODS
    failures = 0
    for at in range(1, calls + 1):
        world = World()
        world.hostage.fails_at = world.hostage.calls + at
        failed = [one for one in world.drain() if not one.placed]
        failures += len(failed)
        for one in failed:
            assert one.failure is not None
            assert isinstance(one.failure.cause, ZeroDivisionError)
            # Some calls are a plugin's own, which is named then.
            assert one.problem.startswith("internal error")
            assert one.problem.endswith(f"please report: ZeroDivisionError: call {world.hostage.fails_at}")
            assert one.digest
        world.hostage.now += 400 * NANOSECONDS
        world.drain()
        assert not list(world.scheduler.pending), at
        nodes = [world.scheduler.cache.node_of(("default", f"p{one}")) for one in range(_PODS)]
        assert None not in nodes, at
        table = world.scheduler.cache.table
        for name, pods in Counter(nodes).items():
            assert name is not None
            row = table.row(table.index(name))
            assert (row["requested.pods"], row["requested.cpu"]) == (pods, 1000 * pods), at
    assert failures >= 2 * _PODS


def test_a_pod_whose_decision_failed_backs_off_longer_each_time() -> None:
    world = World()
    waits = []
    for _ in range(4):
        world.hostage.fails_at = world.hostage.calls + 4
        failed = [one for one in world.drain() if not one.placed]
        if not failed:
            break
        due = world.scheduler.next_time()
        assert due is not None
        waits.append(due - world.hostage.now)
        world.hostage.now = due
    assert waits[:1] == [NANOSECONDS]


def test_a_problem_of_policy_names_rule_and_place() -> None:
    world = World({"parameters": {"fitWeights": {"cel": "{'cpu': pod.subPriority - 5}"}}})
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.failure is not None
    assert (decision.failure.step, decision.failure.cause) == ("score:NodeResourcesFit", None)
    file, line, column = decision.failure.place.rsplit(":", 2)
    assert file.endswith(".yaml")
    assert int(line) > 0 < int(column)
    assert decision.problem.endswith(f"(score `NodeResourcesFit`, {decision.failure.place})")


def test_an_expression_that_fails_is_told_apart_from_one_that_refuses() -> None:
    world = World(
        {
            "filters": [
                {"name": "Team", "require": {"cel": "pod.labels['team'] == 'a'"}, "reason": "not yours"}
            ]
        }
    )
    (without, *_) = world.drain()
    assert [(one.filter, one.error) for one in without.refusals] == [
        ("Team", "no_such_key: no such key: 'team'")
    ]
    world.scheduler.set_pod(pod("other", {"labels": {"team": "b"}}))
    (refused,) = world.drain()
    assert [(one.filter, one.reason, one.error) for one in refused.refusals] == [("Team", "not yours", "")]


def test_a_back_off_that_policy_cannot_say_is_no_reason_to_try_without_pause() -> None:
    unsaid = {"cel": "duration(pod.labels['patience'])"}
    world = World(
        {
            "filters": [{"name": "Never", "require": False}],
            "queue": {"initialBackoff": unsaid, "maximumBackoff": unsaid},
        }
    )
    attempts = 0
    for at in range(20):
        world.scheduler.set_node(node(f"another-{at}", {}))
        attempts += len(world.drain())
    assert attempts <= 3 * _PODS, "the first attempts, early ones, and no more until time goes on"

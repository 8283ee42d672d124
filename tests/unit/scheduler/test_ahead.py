"""Some pods are placed by a revision that is on its way: its profile beside the other one, on one cache and ledger."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.runtime.rollout.changes import changes
from koordpolicy.runtime.rollout.counts import ComparisonTally
from koordpolicy.runtime.rollout.shadow import Comparison
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.shadow import PlacementShadow
from tests.unit.scheduler.world import PROFILE, World, policies

BUSY: dict[str, Any] = {
    "nodes": {
        "a": {"labels": {"zone": "z1"}, "pods": {"x": {"request": {"cpu": 6, "memory": "6Gi"}}}},
        "b": {"labels": {"zone": "z2"}},
    }
}
PACKING = {"parameters": {"fitStrategy": "MostAllocated"}}
AHEAD = {"labels": {"who": "ahead"}}


def is_ahead(_pod: str, labels: Mapping[str, str]) -> bool:
    return labels.get("who") == "ahead"


def going(
    candidate: RuleGraph, given: Mapping[str, Any] = BUSY, active: RuleGraph | None = None, **more: Any
) -> World:
    """A scheduler that lets the candidate place the pods that are ahead."""
    world = World(active or policies(), **more)
    world.build(given)
    world.scheduler.ahead = lambda: (candidate, is_ahead)
    return world


def test_each_pod_is_placed_by_its_revision_and_says_so() -> None:
    old, new = policies(), policies(PACKING)
    world = going(new, active=old)
    first, second, third = world.place("p"), world.place("q", AHEAD), world.place("r")
    assert [one.node for one in (first, second, third)] == ["b", "a", "b"]
    assert [one.digest for one in (first, second, third)] == [old.digest, new.digest, old.digest]
    assert [one.ahead for one in (first, second, third)] == [False, True, False]
    world.scheduler.ahead = lambda: None
    assert world.place("s", AHEAD).node == "b", "the rollout has turned back"


def test_room_that_one_revision_has_given_the_other_one_does_not_give_again() -> None:
    world = going(policies(PACKING), {"nodes": {"a": {}}})
    whole = {"request": {"cpu": 6, "memory": "1Gi"}}
    assert world.place("p", {**whole, **AHEAD}).node == "a"
    assert not world.place("q", whole).placed
    world = going(policies(PACKING), {"nodes": {"a": {}}})
    assert world.place("p", whole).node == "a"
    assert not world.place("q", {**whole, **AHEAD}).placed


def test_what_the_new_revision_refuses_it_says_and_the_old_one_places_when_it_is_turned_back() -> None:
    own = {"name": "own", "require": {"cel": "node.labels.zone == 'z9'"}, "reason": "not in z9"}
    world = going(policies({"filters": [own]}), diagnosing=True)
    decision = world.place("p", AHEAD)
    assert decision.message.startswith("0/2 nodes are available: 2 not in z9.")
    assert world.diagnose()[0].advice, "it is advised by the revision that refuses it"
    assert world.place("q").placed
    world.scheduler.ahead = lambda: None
    world.pass_time(60)
    placed = world.scheduler.schedule_one()
    assert placed is not None
    assert (placed.pod[1], placed.node, placed.ahead) == ("p", "b", False)


def test_a_pod_is_tried_again_when_it_comes_to_be_ahead() -> None:
    nowhere = {"name": "own", "require": {"cel": "node.labels.zone == 'z9'"}}
    world = World(policies({"filters": [nowhere]}))
    world.build(BUSY)
    assert not world.place("p", AHEAD).placed
    world.pass_time(60)
    assert world.scheduler.schedule_one() is None, "nothing has happened"
    world.scheduler.ahead = lambda: (policies(), is_ahead)
    placed = world.scheduler.schedule_one()
    assert placed is not None
    assert (placed.node, placed.ahead) == ("b", True)


@pytest.mark.parametrize("event", ["node", "pod"])
def test_an_event_brings_back_what_only_the_new_revision_refused(event: str) -> None:
    """The deciding profile has no such filter, so that it knows of no event against it."""
    own = {"name": "own", "require": {"cel": "node.labels.zone == 'z3' || node.pods.size() == 0"}}
    world = going(policies({"filters": [own]}), {"nodes": {"a": {"pods": {"x": {}}}}})
    assert not world.place("p", AHEAD).placed
    world.pass_time(60)
    assert world.scheduler.schedule_one() is None, "nothing has happened"
    if event == "node":
        world.build({"nodes": {"a": {"labels": {"zone": "z3"}}}})
    else:
        world.scheduler.remove_pod(("default", "x"))
    placed = world.scheduler.schedule_one()
    assert placed is not None
    assert (placed.pod[1], placed.node) == ("p", "a")


def test_a_change_of_policy_while_some_go_ahead_keeps_both() -> None:
    world = going(policies(PACKING))
    assert world.place("p", AHEAD).node == "a"
    world.scheduler.replace_graph(policies({"parameters": {"fitStrategy": "LeastAllocated"}}, {"scores": []}))
    assert [world.place("q").node, world.place("r", AHEAD).node] == ["b", "a"]


def test_it_may_read_facts_that_the_deciding_revision_does_not() -> None:
    own = {"name": "own", "require": {"cel": "node.pods.all(p, p.name != 'x')"}, "reason": "x is there"}
    world = going(policies(PACKING, {"filters": [own]}))
    assert world.place("p", AHEAD).node == "b"
    assert world.place("q").node == "b"


def compared(world: World, candidate: RuleGraph, sample: float) -> Comparison:
    active = policies()
    comparison = Comparison(active, candidate, changes(active, candidate).decisions)
    comparison.begin(sample, keep=5)
    scheduler = world.scheduler
    shadow = PlacementShadow(
        lambda: (comparison, candidate), PROFILE, Role(), keep=scheduler.keep_facts,
        kept=lambda: scheduler.kept_facts, deciding=lambda: scheduler.profile, clock=count(1).__next__,
    )  # fmt: skip
    shadow.begun()
    scheduler.on_decided = shadow.decided
    return comparison


def test_what_goes_ahead_is_compared_with_the_deciding_revision() -> None:
    candidate = policies(PACKING)
    world = going(candidate)
    comparison = compared(world, candidate, 100.0)
    assert [world.place("p", AHEAD).node, world.place("q").node] == ["a", "b"]
    assert comparison.counts.kinds == {"SchedulingProfile": ComparisonTally(2, 2, 0)}
    assert [(one.active, one.candidate) for one in comparison.differences] == [("b", "a"), ("b", "a")]


def test_a_decision_that_only_the_new_revision_fails_on_counts_whatever_the_sample() -> None:
    own = {"name": "own", "value": 1, "weight": {"cel": "1 / (pod.labels.size() - 1)"}}
    candidate = policies({"scores": [own]})
    world = going(candidate)
    comparison = compared(world, candidate, 0.0)
    decision = world.place("p", AHEAD)
    assert decision.problem
    assert comparison.counts.total == ComparisonTally(1, 1, 1)
    assert world.place("q").placed
    assert comparison.counts.total == ComparisonTally(1, 1, 1)


def test_a_revision_that_changes_nothing_of_placing_pods_decides_on_none() -> None:
    same = policies({"parameters": {"fitStrategy": "LeastAllocated"}})
    world = going(same, active=policies({"parameters": {"fitStrategy": "LeastAllocated"}}))
    assert not world.place("p", AHEAD).ahead

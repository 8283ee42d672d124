"""Placements by a revision on its way are compared with those that are carried out."""

from itertools import count
from typing import Any

from koordpolicy.graph import RuleGraph
from koordpolicy.runtime.rollout.changes import changes
from koordpolicy.runtime.rollout.counts import ComparisonTally
from koordpolicy.runtime.rollout.shadow import Comparison
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.shadow import PlacementShadow
from tests.unit.scheduler.world import PROFILE, World, policies

BUSY: dict[str, Any] = {
    "nodes": {
        "a": {"labels": {"zone": "z1"}, "pods": {"x": {"request": {"cpu": 8, "memory": "8Gi"}}}},
        "b": {"labels": {"zone": "z2"}},
    }
}
FULL = {"request": {"cpu": 20}}


def shadowed(candidate: RuleGraph, sample: float = 100.0) -> tuple[World, Comparison]:
    """A scheduler by the pack with the candidate beside it."""
    world = World(policies())
    world.build(BUSY)
    active = policies()
    comparison = Comparison(active, candidate, changes(active, candidate).decisions)
    comparison.begin(sample, keep=5)
    scheduler = world.scheduler
    shadow = PlacementShadow(
        lambda: (comparison, candidate),
        PROFILE,
        Role(),
        keep=scheduler.keep_facts,
        kept=lambda: scheduler.kept_facts,
        deciding=lambda: scheduler.profile,
        clock=count(1).__next__,
    )
    shadow.begun()
    scheduler.on_decided = shadow.decided
    return world, comparison


def test_a_candidate_that_would_place_elsewhere_disagrees_and_the_pod_goes_where_it_went() -> None:
    world, comparison = shadowed(policies({"parameters": {"fitStrategy": "MostAllocated"}}))
    assert world.place("p").node == "b"
    assert comparison.counts.kinds == {"SchedulingProfile": ComparisonTally(1, 1, 0)}
    (difference,) = comparison.differences
    assert (difference.active, difference.candidate) == ("b", "a")
    assert difference.facts == {"pod": "default/p"}


def test_a_candidate_that_would_do_the_same_agrees_also_where_no_node_is_left() -> None:
    world, comparison = shadowed(policies({"scores": [{"name": "NodeResourcesFit", "weight": 2}]}))
    assert world.place("p").node == "b"
    assert not world.place("full", FULL).placed
    assert comparison.counts.total == ComparisonTally(2, 0, 0)
    assert (comparison.counts.active_time, comparison.counts.candidate_time) == (2, 2)


def test_a_candidate_may_read_what_the_active_revision_does_not() -> None:
    own = {"name": "own", "require": {"cel": "node.pods.all(p, p.name != 'x') && node.labels.zone == 'z1'"}}
    world, comparison = shadowed(policies({"filters": [own]}))
    assert world.place("p").node == "b"
    (difference,) = comparison.differences
    assert (difference.active, difference.candidate) == ("b", "no node")
    assert comparison.dropped == 0


def test_a_candidate_without_another_profile_is_not_asked() -> None:
    world, comparison = shadowed(policies())
    assert world.place("p").node == "b"
    assert comparison.counts.total == ComparisonTally()


def test_the_share_that_the_step_says_is_compared() -> None:
    world, comparison = shadowed(policies({"parameters": {"fitStrategy": "MostAllocated"}}), sample=50.0)
    for at in range(6):
        world.place(f"p{at}")
    assert comparison.counts.total.compared == 3

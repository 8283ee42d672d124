"""Several schedulers at work at once: who has which node and which pod, and how pods go from hand to hand."""

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.graph import RuleGraph
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import SHARD
from koordpolicy.scheduler.binder import PassOn, Report, plan
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.shards import FOREIGN, Shard, read_route, route_text, share_of
from tests.unit.scheduler.world import START, World, node, pod, policies


@cache
def _compiled() -> RuleGraph:
    return policies()


class Fleet:
    """Schedulers that hear the same news; what they decide becomes news in turn."""

    def __init__(self, count: int) -> None:
        compiled = _compiled()
        self.shards = [Shard(index, count) for index in range(count)]
        self.worlds = [World(compiled, role=Role(shard=shard)) for shard in self.shards]
        self.pods: dict[str, dict[str, Any]] = {}
        self.where: dict[str, str] = {}
        self.by: dict[str, int] = {}
        self.passed: list[tuple[str, str]] = []
        self.told: dict[str, str] = {}

    def node(self, name: str, shard: int | None = None, **said: Any) -> None:
        """A node; pinned to a shard where that matters."""
        labels = {} if shard is None else {SHARD: str(shard)}
        for world in self.worlds:
            world.scheduler.set_node(node(name, {**said, "labels": {**said.get("labels", {}), **labels}}))

    def submit(self, name: str, **said: Any) -> Pod:
        """A pod comes; `home` is where it begins."""
        home = said.pop("home", None)
        if home is not None:
            said["annotations"] = {SHARD: str(home)}
        self.pods[name] = said
        return self._tell(name)

    def _tell(self, name: str, **more: Any) -> Pod:
        made = pod(name, {**self.pods[name], **more})
        for world in self.worlds:
            world.scheduler.set_pod(made)
        return made

    def run(self, rounds: int = 20) -> None:
        """Let each decide in turn, time going on, until nothing is decided any more."""
        for _ in range(rounds):
            for index, world in enumerate(self.worlds):
                while (found := world.scheduler.schedule_next()) is not None:
                    self._carry_out(index, *found)
            for world in self.worlds:
                world.pass_time(15)

    def _carry_out(self, index: int, decision: PodDecision, asked: Pod) -> None:
        name, planned = decision.pod[1], plan(decision, asked, START)
        assert self.shards[index].holds(asked)
        if decision.placed:
            assert name not in self.where
            self.where[name], self.by[name] = decision.node, index
            self._tell(name, node=decision.node)
        elif isinstance(planned, PassOn):
            self.passed.append((name, planned.route))
            self.pods[name]["annotations"] = {SHARD: planned.route}
            self._tell(name)
        elif isinstance(planned, Report):
            self.told[name] = planned.message
            if planned.homeward:
                self.pods[name]["annotations"] = {}
                self._tell(name)


@given(st.text(min_size=1, max_size=20), st.integers(1, 30))
def test_one_more_shard_takes_from_the_others_and_they_from_nobody(name: str, count: int) -> None:
    before, after = share_of(name, count), share_of(name, count + 1)
    assert after in {before, count}


def test_shares_are_about_equal() -> None:
    counted = Counter(share_of(f"node-{number}", 4) for number in range(4000))
    assert len(counted) == 4
    assert all(850 < shares < 1150 for shares in counted.values())


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ("0", (0,)), ("0>2", (0, 2)), ("2>0>1", (2, 0, 1)), ("3", ()), ("0>3", ()), ("0>0", ()), ("", ()),
        (">", ()), ("0>", ()), ("a", ()), ("-1", ()), ("٣", ()), ("0000", ()), ("1" * 10_000, ()),
    ],
)  # fmt: skip
def test_the_way_of_a_pod_is_read_or_left_aside(text: str, route: tuple[int, ...]) -> None:
    assert read_route(text, 3) == route
    assert not route or route_text(route) == text


@pytest.mark.parametrize(("index", "count"), [(-1, 2), (2, 2), (0, 0), (0, 257)])
def test_a_shard_that_there_cannot_be(index: int, count: int) -> None:
    with pytest.raises(ValueError, match="no shard"):
        Shard(index, count)


@pytest.mark.parametrize(("label", "owner"), [("1", 1), ("0", 0), ("7", None), ("x", None), ("", None)])
def test_a_label_pins_a_node_if_there_is_such_a_shard(label: str, owner: int | None) -> None:
    fallback = share_of("n", 2)
    expected = fallback if owner is None else owner
    assert Shard(0, 2).owner("n", {SHARD: label}) == expected
    fleet = Fleet(2)
    for world in fleet.worlds:
        world.scheduler.set_node(node("n", {"labels": {SHARD: label}}))
    fleet.submit("p", home=expected)
    fleet.run(1)
    assert (fleet.where, fleet.by) == ({"p": "n"}, {"p": expected})


def test_each_places_on_its_own_nodes_alone() -> None:
    fleet = Fleet(3)
    for number in range(24):
        fleet.node(f"n-{number}")
    for number in range(60):
        fleet.submit(f"p-{number}")
    fleet.run()
    assert len(fleet.where) == 60
    assert {fleet.by[name] for name in fleet.where} == {0, 1, 2}
    for name, where in fleet.where.items():
        assert share_of(where, 3) == fleet.by[name]


def test_a_pod_goes_straight_to_where_it_fits() -> None:
    fleet = Fleet(4)
    fleet.node("small", 0, allocatable={"cpu": "1", "memory": "1Gi"})
    fleet.node("other", 1, allocatable={"cpu": "1", "memory": "1Gi"})
    fleet.node("large", 3)
    fleet.submit("p", home=0, request={"cpu": "8"})
    fleet.run(1)
    assert fleet.where == {"p": "large"}
    assert fleet.passed == [("p", "0>3")]


def test_where_it_fits_nowhere_it_waits_at_home_and_is_found_again() -> None:
    fleet = Fleet(2)
    fleet.node("a", 0)
    fleet.node("b", 1)
    fleet.submit("p", home=0, request={"cpu": "16"})
    fleet.run()
    assert (fleet.where, fleet.passed) == ({}, [])
    assert fleet.told["p"].startswith("0/2 nodes are available: 2 Insufficient cpu")
    fleet.node("b", 1, allocatable={"cpu": "32", "memory": "32Gi"})
    fleet.run(2)
    assert fleet.where == {"p": "b"}
    assert fleet.passed == [("p", "0>1")]


def test_one_that_knows_better_sends_it_home_and_it_does_not_go_round_and_round() -> None:
    fleet = Fleet(2)
    fleet.node("a", 0, allocatable={"cpu": "1", "memory": "1Gi"})
    fleet.node("b", 1)
    # Shard 1 knows of a pod on its node that shard 0 has not heard of.
    secret = pod("secret", {"node": "b", "request": {"cpu": "8"}})
    fleet.worlds[1].scheduler.set_pod(secret)
    fleet.submit("p", home=0, request={"cpu": "8"})
    fleet.pods["p"]["annotations"] = {}
    home = share_of("uid-p", 2)
    if home != 0:  # begin with the one that errs
        fleet.pods["p"]["annotations"] = {SHARD: "0"}
    fleet.run(10)
    assert fleet.where == {}
    assert 1 <= len(fleet.passed) <= 12, "back-off holds it up"
    fleet.worlds[0].scheduler.set_pod(secret)
    fleet.worlds[1].scheduler.remove_pod(secret.key)
    fleet.worlds[0].scheduler.remove_pod(secret.key)
    fleet.run(10)
    assert fleet.where == {"p": "b"}


def test_what_is_near_or_apart_is_judged_with_the_nodes_of_all() -> None:
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
                ]
            }
        }
    }
    fleet = Fleet(2)
    for zone, shard in (("x", 0), ("x", 1), ("y", 1)):
        fleet.node(f"{zone}-{shard}", shard, labels={"zone": zone})
    for number in range(3):
        fleet.submit(f"db-{number}", labels={"app": "db"}, **apart)
        fleet.run(1)
    assert sorted(where[0] for where in fleet.where.values()) == ["x", "y"]
    assert "anti-affinity" in next(iter(fleet.told.values()))


def test_pods_of_gangs_are_not_placed_in_part_and_are_told_why() -> None:
    fleet = Fleet(2)
    for at in range(2):
        fleet.node(f"n{at}", shard=at)
    for at in range(4):
        annotations = {"gang.scheduling.koordinator.sh/name": "g", SHARD: str(at % 2)}
        fleet.submit(f"p{at}", annotations=annotations)
    fleet.submit("q")
    fleet.run()
    assert set(fleet.where) == {"q"}
    assert "give them a schedulerName that a scheduler without --shard places" in fleet.told["p0"]
    assert set(fleet.told) == {f"p{at}" for at in range(4)}


def test_replicas_that_hang_together_have_one_home() -> None:
    owners = [{"kind": "ReplicaSet", "name": "r", "uid": "r", "apiVersion": "apps/v1", "controller": True}]
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    shard = Shard(0, 16)
    loose = {shard.home(pod(f"p-{at}", {"owners": owners})) for at in range(50)}
    tied = {
        shard.home(pod(f"p-{at}", {"owners": owners, "topologySpreadConstraints": spread}))
        for at in range(50)
    }
    assert len(loose) > 5
    assert tied == {share_of("r", 16)}


def test_room_is_made_by_the_owner_of_the_node() -> None:
    fleet = Fleet(2)
    fleet.node("a", 0, allocatable={"cpu": "2", "memory": "2Gi"})
    fleet.node("b", 1)
    fleet.submit("low", home=1, request={"cpu": "8"}, priority=100)
    fleet.run(1)
    assert fleet.where == {"low": "b"}
    fleet.submit("high", home=0, request={"cpu": "8"}, priority=9900)
    found = fleet.worlds[0].scheduler.schedule_one()
    assert found is not None
    assert (found.route, found.preemption) == ((0, 1), None)
    fleet.pods["high"]["annotations"] = {SHARD: "0>1"}
    fleet._tell("high")
    found = fleet.worlds[1].scheduler.schedule_one()
    assert found is not None
    assert found.preemption is not None
    assert (found.preemption.node, found.promised) == ("b", "b")


def test_one_alone_refuses_the_nodes_of_others_last_and_says_so() -> None:
    fleet = Fleet(2)
    fleet.node("a", 1)
    fleet.node("b", 1, unschedulable=True)
    decision = fleet.worlds[0].scheduler.framework.decide(pod("p", {"annotations": {SHARD: "0"}}))
    assert [(one.reason, one.nodes) for one in decision.refusals] == [
        ("node(s) were unschedulable", 1),
        (FOREIGN, 1),
    ]


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.lists(st.integers(1, 8), min_size=1, max_size=12),
)
def test_nothing_is_placed_twice_overfilled_or_left_waiting_beside_room(
    count: int, rooms: list[int], wants: list[int]
) -> None:
    fleet = Fleet(count)
    for at, room in enumerate(rooms):
        fleet.node(f"n-{at}", allocatable={"cpu": str(room), "memory": "64Gi"})
    for at, want in enumerate(wants):
        fleet.submit(f"p-{at}", request={"cpu": str(want)})
    fleet.run()
    used: Counter[str] = Counter()
    for name, where in fleet.where.items():
        used[where] += wants[int(name[2:])]
    free = [room - used[f"n-{at}"] for at, room in enumerate(rooms)]
    assert min(free) >= 0
    waiting = [wants[int(name[2:])] for name in fleet.pods if name not in fleet.where]
    assert all(want > max(free) for want in waiting)

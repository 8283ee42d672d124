"""PodGroups of Kubernetes' own whose pods share labels of nodes: all within one domain, or nowhere, and told why."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from koordpolicy.algorithms.domains import IN_NONE, label_domains
from koordpolicy.cluster.events import Event
from koordpolicy.model.gang import read_kubernetes_pod_group
from tests.unit.scheduler.test_gangs import Ganged
from tests.unit.scheduler.world import node, pod

RACK = "example.com/rack"


class Racked(Ganged):
    """Nodes with so many cores in racks, and the PodGroup `g`."""

    def __init__(
        self,
        nodes: Mapping[str, tuple[str, int]],
        minimum: int | None,
        keys: Sequence[str] = (RACK,),
        **parameters: object,
    ) -> None:
        super().__init__(**parameters)
        self.rack_of: dict[str, str] = {}
        for name, (rack, cpus) in nodes.items():
            self.put_node(name, rack, cpus)
        policy = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
        constraints = {"topology": [{"key": key} for key in keys]}
        found = read_kubernetes_pod_group(
            {
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"schedulingPolicy": policy, "schedulingConstraints": constraints},
            }
        )
        self.scheduler.set_state(lambda state: state.pod_groups.set(found), Event.POD_GROUP_CHANGED)

    def put_node(self, name: str, rack: str, cpus: int) -> None:
        self.rack_of[name] = rack
        said = {
            "labels": {RACK: rack} if rack else {},
            "allocatable": {"cpu": str(cpus), "memory": "999Gi"},
        }
        self.scheduler.set_node(node(name, said))

    def members(self, count: int, first: int = 0, **more: Any) -> list[str]:
        names = [f"p{at}" for at in range(first, first + count)]
        for name in names:
            self.pods[name] = {"schedulingGroup": {"podGroupName": "g"}, **more}
            self.scheduler.set_pod(pod(name, self.pods[name]))
        return names

    def racks(self, names: Sequence[str]) -> set[str]:
        return {self.rack_of[str(self.scheduler.cache.node_of(("default", name)))] for name in names}


TWO = {"a": ("r1", 2), "b": ("r1", 2), "c": ("r2", 3), "d": ("", 9)}


@pytest.mark.parametrize("placement", ["OneByOne", "AtOnce"])
@pytest.mark.parametrize(("count", "rack"), [(3, "r2"), (4, "r1")])
def test_a_gang_is_placed_within_the_tightest_domain_that_takes_it(
    placement: str, count: int, rack: str
) -> None:
    made = Racked(TWO, count, placement=placement)
    names = made.members(count)
    assert made.run() == names
    assert made.racks(names) == {rack}
    assert not made.scheduler.cache.state.network.planned


def test_a_gang_that_no_domain_takes_is_told_which_were_tried_and_comes_in_once_one_does() -> None:
    made = Racked(TWO, 5)
    names = made.members(5)
    assert made.run() == []
    assert f"1 of 5 pods find no node in one domain of {RACK}: r1 takes 4, r2 takes 3" in made.messages["p0"]
    assert made.scheduler.cache.pod_count == 0
    made.put_node("d", "r2", 9)  # a label is another one, and the gang is in
    made.pass_time(30)
    assert made.run() == names
    assert made.racks(names) == {"r2"}


def test_without_the_label_on_any_node_it_waits_and_is_told() -> None:
    made = Racked({"a": ("", 9)}, 2)
    made.members(2)
    assert made.run() == []
    assert f"no node has {RACK}" in made.messages["p0"]


def test_as_a_wish_it_does_not_keep_a_gang_out() -> None:
    made = Racked(TWO, 4, podGroupTopology="Preferred")
    names = made.members(4)
    assert made.run() == names
    assert made.racks(names) == {"r1"}
    made = Racked(TWO, 12, podGroupTopology="Preferred")
    assert len(made.members(12)) == len(made.run())


def test_policy_may_ignore_it() -> None:
    made = Racked(TWO, 12, podGroupTopology="Ignored")
    assert len(made.members(12)) == len(made.run())


def test_later_pods_go_where_the_gang_is() -> None:
    made = Racked(TWO, 2)
    names = made.members(2)
    assert made.run() == names
    assert made.racks(names) == {"r2"}
    names += made.members(1, 2)
    assert made.run() == ["p2"]
    assert made.racks(names) == {"r2"}
    made.members(1, 3)
    assert made.run() == [], "the rack of the others is full"
    assert f"in one domain of {RACK}: r2 takes 0" in made.messages["p3"]


def test_more_pods_than_it_needs_do_not_keep_it_out() -> None:
    made = Racked(TWO, 3)
    made.members(6)
    bound = made.run()
    assert len(bound) == 4, "as many as the rack takes that takes most"
    assert made.racks(bound) == {"r1"}


def test_pods_without_a_gang_are_placed_one_by_one_within_one_domain() -> None:
    made = Racked(TWO, None)
    made.members(6)
    bound = made.run()
    assert len(bound) == 4
    assert made.racks(bound) == {"r1"}


def test_pods_that_are_in_several_domains_already_are_told() -> None:
    made = Racked(TWO, 2)
    made.come("x", {"schedulingGroup": {"podGroupName": "g"}, "node": "a", "phase": "Running"})
    made.come("y", {"schedulingGroup": {"podGroupName": "g"}, "node": "c", "phase": "Running"})
    made.members(1)
    assert made.run() == []
    assert "are not in one domain" in made.messages["p0"]
    assert "r1, r2" in made.messages["p0"]


def test_room_is_made_within_one_domain() -> None:
    made = Racked(TWO, 4, enablePreemption=True)
    for name, where in (("low1", "a"), ("low2", "c")):
        made.come(name, {"node": where, "phase": "Running", "priority": 10})
    names = made.members(4, priority=20)
    assert made.run() == []
    assert [one for one in ("low1", "low2") if made.scheduler.ledger.leaves(pod(one))] == ["low1"]
    made.go("low1")
    made.pass_time(30)
    assert made.run() == names
    assert made.racks(names) == {"r1"}


def test_a_domain_has_one_value_of_each_label() -> None:
    labels = [
        {"a": "1", "b": "1"},
        {"a": "1", "b": "2"},
        {"a": "1"},
        {},
        {"a": "1", "b": "1"},
        {"a": "", "b": "1"},
    ]
    found = label_domains(("a", "b"), labels)
    assert found.names == ("1/1", "1/2")
    assert found.of_rows.tolist() == [0, 1, IN_NONE, IN_NONE, 0, IN_NONE]


@pytest.mark.parametrize("seed", range(60))
def test_a_gang_is_placed_if_and_only_if_some_domain_can_hold_all(seed: int) -> None:
    """Random racks with others' pods and tainted nodes on them; a brute force counts what each domain holds."""
    chance = random.Random(seed)
    keys = [RACK] if chance.random() < 0.7 else [RACK, "row"]
    labelled: dict[str, dict[str, str]] = {}
    nodes: dict[str, int] = {}
    made = Racked({}, chance.randint(1, 7), keys, placement=chance.choice(["OneByOne", "AtOnce"]))
    for at in range(chance.randint(1, 9)):
        name = f"n{at}"
        labels = {key: chance.choice("xyz") for key in (RACK, "row") if chance.random() < 0.85}
        cpus, tainted = chance.randint(0, 5), chance.random() < 0.15
        said = {
            "labels": labels,
            "allocatable": {"cpu": str(cpus), "memory": "999Gi"},
            "taints": ["a=b:NoSchedule"] if tainted else [],
        }
        made.scheduler.set_node(node(name, said))
        taken = chance.randint(0, cpus)
        if taken:
            made.come(f"o{at}", {"node": name, "phase": "Running", "request": {"cpu": str(taken)}})
        labelled[name], nodes[name] = labels, 0 if tainted else cpus - taken
    gang = made.scheduler.cache.state.pod_groups.get(("default", "g"))
    assert gang is not None
    each, count = chance.randint(1, 2), gang.minimum
    names = made.members(count, request={"cpu": str(each)})
    room: Counter[tuple[str, ...]] = Counter()
    for name, free in nodes.items():
        if all(key in labelled[name] for key in keys):
            room[tuple(labelled[name][key] for key in keys)] += free // each
    bound = made.run()
    if max(room.values(), default=0) < count:
        assert bound == [], room
        return
    assert bound == names, (room, made.messages)
    where = [str(made.scheduler.cache.node_of(("default", name))) for name in names]
    assert len({tuple(labelled[one][key] for key in keys) for one in where}) == 1
    assert all(amount * each <= nodes[one] for one, amount in Counter(where).items())


@pytest.mark.parametrize("seed", range(30))
def test_pods_that_differ_are_within_one_domain_or_nowhere(seed: int) -> None:
    chance = random.Random(seed)
    nodes = {f"n{at}": (chance.choice(["", "r1", "r2", "r3"]), chance.randint(1, 6)) for at in range(8)}
    count = chance.randint(2, 6)
    made = Racked(nodes, count)
    sizes = [chance.randint(1, 3) for _ in range(count)]
    for at, size in enumerate(sizes):
        made.members(1, at, request={"cpu": str(size)})
    bound = made.run()
    assert len(bound) in {0, count}, made.messages
    room = Counter[str]()
    for rack, cpus in nodes.values():
        room[rack] += cpus
    if not any(amount >= sum(sizes) for rack, amount in room.items() if rack):
        assert not bound
    assert len(made.racks(bound)) <= 1
    assert "" not in made.racks(bound)


def test_pods_that_keep_apart_are_planned_beside_each_other() -> None:
    """What filters say of pods beside each other is tried, in one domain after the other."""
    made = Racked({"a": ("r1", 9), "b": ("r2", 2), "c": ("r2", 2), "d": ("r2", 2)}, 3)
    term = {"topologyKey": "example.com/host", "labelSelector": {"matchLabels": {"app": "ring"}}}
    for name in "abcd":
        given = {
            "labels": {RACK: made.rack_of[name], "example.com/host": name},
            "allocatable": {"cpu": "9", "memory": "999Gi"},
        }
        made.scheduler.set_node(node(name, given))
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    names = made.members(3, labels={"app": "ring"}, affinity=apart)
    assert made.run() == names
    assert made.racks(names) == {"r2"}

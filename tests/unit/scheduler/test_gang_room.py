"""Room for gangs that find none: who goes for all of their pods, who waits for whom, and what is taken back when that fails."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Preempt, plan
from koordpolicy.scheduler.driver import Driver
from tests.unit.scheduler.test_gangs import Ganged
from tests.unit.scheduler.test_preemption import budget
from tests.unit.scheduler.world import node, pod

CASES: Final[list[dict[str, Any]]] = YAML(typ="safe").load(
    Path(__file__).with_name("gang_room.yaml").read_text("utf-8")
)
_GROUP: Final = "pod-group.scheduling.sigs.k8s.io"
_JOB: Final = "scheduling.koordinator.sh/questioned-object-key"


class Crowded(Ganged):
    """A world in which gangs make room; pods go when the test says so."""

    def __init__(self, **parameters: object) -> None:
        super().__init__(**{"enablePreemption": True, **parameters})
        self.room: list[PodDecision] = []

    def fill(self, nodes: Mapping[str, Mapping[str, Any]]) -> None:
        for name, said in nodes.items():
            amounts = {"cpu": str(said["cpu"]), "memory": "900Gi"}
            self.scheduler.set_node(node(name, {"allocatable": amounts}))
            for one, of in said.get("pods", {}).items():
                self.put(one, name, of)

    def put(self, name: str, where: str, said: Mapping[str, Any]) -> None:
        named = {_GROUP: "gang", _JOB: "job", "app": "app"}
        self.come(
            name,
            {
                "labels": {label: said[key] for label, key in named.items() if key in said},
                "request": {"cpu": str(said["cpu"]), "memory": "1Gi"},
                "priority": said.get("priority", 5000),
                "node": where,
                "phase": "Running",
            },
        )

    def gang(self, cpus: Mapping[str, int], **said: Any) -> None:
        self.group("g", len(cpus))
        for name, cpu in cpus.items():
            request = {"cpu": str(cpu), "memory": "1Gi"}
            self.come(name, {"labels": {_GROUP: "g"}, "request": request, **said})

    def decide(self) -> list[str]:
        """All that is due; the names of those that are bound. Who goes is kept in `room`."""
        bound, driver = [], Driver(self.scheduler)
        for _, action in zip(range(500), driver.actions(self.now), strict=False):
            decision = action.decision
            if decision.placed and action.plan is not None:
                bound.append(decision.pod[1])
                self.confirm(decision.pod[1], decision.node)
            elif not decision.placed:
                self.messages[decision.pod[1]] = decision.message
            if decision.preemption is not None:
                self.room.append(decision)
        assert next(driver.actions(self.now), None) is None, "it comes to rest"
        return sorted(bound)

    def promised(self) -> dict[str, str]:
        promises = self.scheduler.ledger.promises
        return {key[1]: name for name, pods in promises.items() for key in pods}


def victims(decision: PodDecision) -> list[str]:
    assert decision.preemption is not None
    return sorted(one.pod[1] for one in decision.preemption.victims)


@pytest.mark.parametrize("placement", ["OneByOne", "AtOnce"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_who_goes_for_a_gang(case: dict[str, Any], placement: str) -> None:
    world = Crowded(placement=placement, **case.get("policy", {}))
    world.fill(case["nodes"])
    for app, allowed in case.get("budgets", {}).items():
        world.scheduler.cache.state.budgets.set(budget(app, allowed))
    more: dict[str, Any] = {"nodeSelector": case["selector"]} if "selector" in case else {}
    if case.get("apart"):
        term = {
            "labelSelector": {"matchLabels": {_GROUP: "g"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        for name in case["nodes"]:
            amounts = {"cpu": str(case["nodes"][name]["cpu"]), "memory": "900Gi"}
            said = {"labels": {"kubernetes.io/hostname": name}, "allocatable": amounts}
            world.scheduler.set_node(node(name, said))
        more["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    before = world.scheduler.cache.pod_count
    world.gang(case["come"], **more)
    assert world.decide() == []
    assert world.scheduler.cache.pod_count == before, "nothing is held but promises"
    found = [victims(one) for one in world.room]
    assert found == ([case["goes"]] if case["goes"] else []), world.messages
    if not case["goes"]:
        assert not world.promised()
        assert any(case.get("says", "") in text for text in world.messages.values()), world.messages
        return
    assert world.promised() == case.get("where", world.promised())
    assert len(world.promised()) == len(case["come"])
    remark = f"room for {len(case['come'])} pods of gang default/g is made"
    assert all(remark in text for text in world.messages.values()), world.messages
    bound: list[str] = []
    for name in case["goes"]:
        world.go(name)
        world.pass_time(60)
        bound = world.decide()
        if bound:
            break  # a gang that goes as a whole may make more room than is needed
    assert bound == sorted(case["come"])
    assert len(world.room) == 1, "nobody else goes"
    assert not world.promised(), "promises end with the way to the nodes"


def crowded() -> Crowded:
    world = Crowded()
    world.fill({f"n{at}": {"cpu": 2, "pods": {f"v{at}": {"cpu": 2}}} for at in range(2)})
    return world


def test_all_are_told_of_their_nodes_before_anybody_is_sent_away() -> None:
    world = crowded()
    world.gang({"a": 2, "b": 2})
    world.decide()
    [decision] = world.room
    written = plan(decision, pod(decision.pod[1], world.pods[decision.pod[1]]), world.now)
    assert isinstance(written, Preempt)
    assert [one.pod[1] for one in written.victims] == ["v0", "v1"]
    assert written.report.nominated
    assert [(key[1], where) for key, where in written.beside] == [
        (name, where) for name, where in world.promised().items() if name != decision.pod[1]
    ]
    assert "room for 2 pods of gang default/g is made by sending 2 pods away from 2 nodes" in decision.message


def test_what_could_not_be_written_is_taken_back_from_all_of_them() -> None:
    world = crowded()
    world.gang({"a": 2, "b": 2})
    world.decide()
    world.scheduler.call_off(world.room[0])
    assert not world.promised()
    assert not any(world.scheduler.ledger.leaves(pod(f"v{at}")) for at in range(2))
    world.pass_time(60)
    assert world.decide() == []
    assert len(world.room) == 2, "and it is tried again"


def test_a_gang_that_nobody_goes_for_any_more_has_no_promises() -> None:
    world = crowded()
    world.gang({"a": 2, "b": 2})
    world.decide()
    assert len(world.promised()) == 2
    for at in range(2):
        world.go(f"v{at}")
        world.put(f"w{at}", f"n{at}", {"cpu": 2, "priority": 9999})  # somebody else's pod is there at once
    world.pass_time(60)
    assert world.decide() == []
    assert not world.promised()
    assert "nobody may go for it" in "".join(world.messages.values())


def test_others_do_not_take_what_is_promised() -> None:
    world = crowded()
    world.gang({"a": 2, "b": 2})
    world.decide()
    world.go("v0")
    world.come("thief", {"request": {"cpu": "1", "memory": "1Gi"}, "priority": 6000})
    world.pass_time(60)
    assert world.decide() == []
    world.go("v1")
    world.pass_time(60)
    assert world.decide() == ["a", "b"]


def test_after_a_restart_the_gang_waits_for_those_who_go() -> None:
    before = crowded()
    before.gang({"a": 2, "b": 2})
    before.decide()
    where = before.promised()
    world = Crowded()
    world.fill({"n0": {"cpu": 2}, "n1": {"cpu": 2}})
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    for at in range(2):
        raw = {**before.pods[f"v{at}"], "conditions": [condition]}
        leaving = pod(f"v{at}", raw)
        world.scheduler.set_pod(replace(leaving, deleted_at=world.now))
    world.group("g", 2)
    for name in "ab":
        world.pods[name] = before.pods[name]
        world.scheduler.set_pod(replace(pod(name, before.pods[name]), nominated_node=where[name]))
    assert world.decide() == []
    assert not world.room
    assert "pods have still to leave" in "".join(world.messages.values())
    assert world.promised() == where
    for at in range(2):
        world.go(f"v{at}")
    world.pass_time(60)
    assert world.decide() == ["a", "b"]


def test_pods_that_wait_for_a_permit_give_their_nodes_back_and_are_not_sent_away() -> None:
    world = Crowded()
    world.fill({"n0": {"cpu": 4}})
    world.come("x", {"request": {"cpu": "4", "memory": "1Gi"}, "priority": 5000})
    assert world.scheduler.schedule_one() is not None
    account = world.scheduler.ledger.get(("default", "x"))
    assert account is not None
    world.scheduler.ledger.wait(account, world.now + 10**12)
    world.gang({"a": 2, "b": 2})
    assert world.decide() == ["a", "b"], "there is nobody to wait for"
    [decision] = world.room
    assert victims(decision) == ["x"]
    assert decision.preemption is not None
    assert not decision.preemption.sent_away
    assert world.scheduler.cache.node_of(("default", "x")) is None
    for name in "ab":
        world.go(name)
    world.pass_time(30)
    assert world.decide() == ["x"]


def test_a_pod_that_does_not_displace_others_has_nobody_go_for_its_gang() -> None:
    world = crowded()
    world.gang({"a": 2, "b": 2}, preemptionPolicy="Never")
    assert world.decide() == []
    assert not world.room


def test_pods_that_wait_keep_their_nodes_in_the_plan() -> None:
    world = Crowded()
    world.fill({"n0": {"cpu": 2, "pods": {"v0": {"cpu": 2}}}, "n1": {"cpu": 2}})
    world.gang({"a": 2, "b": 2})
    assert world.decide() == []
    assert victims(world.room[0]) == ["v0"]
    assert world.promised() == {"a": "n1", "b": "n0"}


Crowd = dict[str, dict[str, Any]]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Crowd, dict[str, int]]:
    nodes: Crowd = {}
    for at in range(draw(st.integers(1, 4))):
        pods = {
            f"v{at}-{one}": {
                "cpu": draw(st.integers(1, 3)),
                "priority": draw(st.sampled_from([10, 20, 9500])),
            }
            for one in range(draw(st.integers(0, 3)))
        }
        cpu = max(sum(one["cpu"] for one in pods.values()) + draw(st.integers(0, 2)), 1)
        nodes[f"n{at}"] = {"cpu": cpu, "pods": pods}
    return nodes, {f"p{at}": draw(st.integers(1, 3)) for at in range(draw(st.integers(2, 4)))}


@settings(max_examples=60, deadline=None)
@given(crowds())
def test_those_who_go_are_enough_and_none_of_them_goes_in_vain(drawn: tuple[Crowd, dict[str, int]]) -> None:
    nodes, wanted = drawn
    world = Crowded()
    world.fill(nodes)
    world.gang(wanted)
    if world.decide() or not world.room:
        return
    going, promised = set(victims(world.room[0])), world.promised()
    assert set(promised) == set(wanted)
    left = {
        name: said["cpu"] - sum(one["cpu"] for key, one in said["pods"].items() if key not in going)
        for name, said in nodes.items()
    }
    for key, where in promised.items():
        left[where] -= wanted[key]
    assert min(left.values()) >= 0
    for name, said in nodes.items():
        for key, one in said["pods"].items():
            if key in going:
                assert one["priority"] < 9500
                assert left[name] < one["cpu"], f"{key} could have stayed"

"""Gangs in the scheduler: whole or absent, whatever comes in between."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from koordpolicy.cluster.events import Event
from koordpolicy.model.gang import read_pod_group
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.reading import read_amounts
from koordpolicy.scheduler.binder import Binding
from koordpolicy.scheduler.driver import Driver
from koordpolicy.scheduler.ledger import Stage
from koordpolicy.scheduler.scheduler import Scheduler
from tests.unit.scheduler.world import World, node, pod
from tests.vectors.policies import document, graph

CASES: Final = YAML(typ="safe").load(Path(__file__).with_name("gangs.yaml").read_text("utf-8"))
_GROUP: Final = "pod-group.scheduling.sigs.k8s.io"
_DOMAIN: Final = "gang.scheduling.koordinator.sh/"


def pod_group(name: str, said: int | Mapping[str, Any]) -> dict[str, Any]:
    """A PodGroup object: its minimum, or `minMember`, `groups`, `match`, `mode`, `seconds`."""
    given = {"minMember": said} if isinstance(said, int) else dict(said)
    written = {
        "groups": json.dumps(given["groups"]) if "groups" in given else "",
        "match-policy": given.get("match", ""),
        "mode": given.get("mode", ""),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {f"{_DOMAIN}{key}": value for key, value in written.items() if value},
        },
        "spec": {"minMember": given["minMember"], "scheduleTimeoutSeconds": given.get("seconds", 0)},
    }


def member(said: object) -> dict[str, Any]:
    """What a pod says: the name of its PodGroup, or `gang` and `minimum` by annotations, or what any pod says."""
    if not isinstance(said, Mapping):
        return {"labels": {_GROUP: said}} if said else {}
    given = dict(said)
    names = {"gang": "name", "minimum": "min-available"}
    annotations = {f"{_DOMAIN}{names[key]}": given.pop(key) for key in names if key in given}
    return {**given, "annotations": {**given.get("annotations", {}), **annotations}}


class Ganged(World):
    """A world whose decisions come to pass at once."""

    def __init__(self, *own: Mapping[str, Any], **parameters: object) -> None:
        spec = {key: value for said in own for key, value in said.items()}
        spec.update({"parameters": parameters} if parameters else {})
        super().__init__(graph(*([document("GangScheduling", "own", spec)] if spec else [])))
        self.pods: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, str] = {}

    def group(self, name: str, said: int | Mapping[str, Any] | None) -> None:
        """A PodGroup comes or changes; None: it goes."""
        if said is None:
            self.scheduler.set_state(
                lambda state: state.pod_groups.remove("default", name), Event.POD_GROUP_CHANGED
            )
        else:
            found = read_pod_group(pod_group(name, said))
            self.scheduler.set_state(lambda state: state.pod_groups.set(found), Event.POD_GROUP_CHANGED)

    def come(self, name: str, said: object) -> None:
        self.pods[name] = member(said)
        self.submit(name, self.pods[name])

    def go(self, name: str) -> None:
        self.scheduler.remove_pod(("default", name))

    def run(self, most: int = 1000) -> list[str]:
        """All decisions that are due, each carried out; the names of those that are bound."""
        bound, driver = [], Driver(self.scheduler)
        for _, action in zip(range(most), driver.actions(self.now), strict=False):
            decision = action.decision
            if decision.placed and action.plan is not None:
                bound.append(decision.pod[1])
                self.confirm(decision.pod[1], decision.node)
            elif not decision.placed:
                self.messages[decision.pod[1]] = decision.message
        assert next(driver.actions(self.now), None) is None, "it comes to rest"
        return sorted(bound)

    def confirm(self, name: str, where: str) -> None:
        self.scheduler.set_pod(pod(name, {**self.pods[name], "node": where}))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_gangs(case: dict[str, Any]) -> None:
    world = Ganged(**case.get("policy", {}))
    for name, cpu in case["nodes"].items():
        world.scheduler.set_node(node(name, {"allocatable": {"cpu": str(cpu), "memory": "100Gi"}}))
    for name, said in case.get("groups", {}).items():
        world.group(name, said)
    for step in case["steps"]:
        for name, said in step.get("group", {}).items():
            world.group(name, said)
        for name, cpu in step.get("node", {}).items():
            world.scheduler.set_node(node(name, {"allocatable": {"cpu": str(cpu), "memory": "100Gi"}}))
        for name, labels in step.get("label", {}).items():
            given = {"allocatable": {"cpu": str(case["nodes"][name]), "memory": "100Gi"}, "labels": labels}
            world.scheduler.set_node(node(name, given))
        for name, said in step.get("come", {}).items():
            world.come(name, said)
        world.pass_time(step.get("seconds", 1))
        for name, cpu in step.get("metric", {}).items():
            usage = read_amounts({"cpu": cpu, "memory": "1Gi"})
            world.scheduler.set_metric(NodeMetric(name, updated_at=world.now, node_usage=usage))
        for name in step.get("go", ()):
            world.go(name)
        bound = world.run()
        assert bound == step.get("bound", bound), world.messages
        for name, text in step.get("says", {}).items():
            assert text in world.messages.get(name, ""), world.messages


def ganged(minimum: int, cpus: int, **said: Any) -> Ganged:
    world = Ganged()
    world.scheduler.set_node(node("n0", {"allocatable": {"cpu": str(cpus), "memory": "100Gi"}}))
    world.group("g", {"minMember": minimum, **said})
    return world


def test_members_are_tried_right_after_each_other_before_others() -> None:
    world = ganged(3, 9)
    for name, said in {"a": "g", "x": "", "b": "g", "y": "", "c": "g"}.items():
        world.pass_time(1)
        world.come(name, said)
    decided = []
    while (found := world.scheduler.schedule_next()) is not None:
        decided.append(found[0].pod[1])
    assert decided == ["a", "b", "c", "a", "b", "x", "y"]


def test_pods_wait_for_each_other_on_their_nodes_and_say_so() -> None:
    world = ganged(3, 9)
    world.come("a", "g")
    world.come("b", "g")
    world.come("c", {"labels": {_GROUP: "g"}, "request": {"cpu": "1"}})
    scheduler = world.scheduler
    for name in ("a", "b"):
        found = scheduler.schedule_next()
        assert found is not None
        assert found[0].pod[1] == name
        assert scheduler.ledger.stage(("default", name)) == Stage.WAITING
    account = scheduler.ledger.get(("default", "a"))
    assert account is not None
    assert account.waits_for == {"Coscheduling": "2 of 3 pods of gang default/g have a node"}


def test_a_member_that_is_deleted_while_others_wait_takes_them_with_it() -> None:
    world = ganged(3, 9)
    for name in "abc":
        world.come(name, "g")
    for _ in "ab":
        world.scheduler.schedule_next()
    world.go("a")
    assert world.run() == []
    assert world.scheduler.cache.pod_count == 0
    world.come("d", "g")
    world.pass_time(60)
    assert world.run() == ["b", "c", "d"]


def test_a_failed_binding_comes_again_alone_once_the_gang_was_bound() -> None:
    world = ganged(2, 9)
    world.come("a", "g")
    world.come("b", "g")
    placed = []
    while (decision := world.scheduler.schedule_one()) is not None:
        placed.append(decision)
    assert sorted(one.pod[1] for one in placed) == ["a", "b"]
    world.confirm("a", "n0")
    world.scheduler.forget(pod("b", world.pods["b"]))
    world.pass_time(60)
    assert world.run() == ["b"]


def test_what_a_scheduler_left_in_part_is_finished_before_anything_else() -> None:
    world = ganged(3, 3)
    world.come("x", {"priority": 9999})
    world.come("a", {"labels": {_GROUP: "g"}, "node": "n0", "phase": "Running"})
    world.come("b", "g")
    world.come("c", "g")
    assert world.run() == ["b", "c"]


def test_gangs_outlive_a_revision() -> None:
    world = ganged(3, 9)
    for name in "ab":
        world.come(name, "g")
    assert world.run() == []
    own = document("GangScheduling", "own", {"minimum": 2})
    world.scheduler.replace_graph(graph(own))
    assert world.run() == ["a", "b"]


def test_waiting_members_are_taken_back_when_nobody_decides_any_more() -> None:
    world = ganged(3, 9)
    for name in "abc":
        world.come(name, "g")
    world.scheduler.schedule_next()
    world.scheduler.forget_waiting()
    assert world.scheduler.cache.pod_count == 0
    world.pass_time(60)
    assert world.run() == ["a", "b", "c"]


def test_pods_without_gangs_cost_the_plugin_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ganged(3, 9)
    asked = []
    ordinary = Scheduler._decide  # it is counted, and not changed

    def decide(self: Scheduler, view: Any) -> Any:
        asked.append(view.pod.name)
        return ordinary(self, view)

    monkeypatch.setattr(Scheduler, "_decide", decide)
    world.come("x", "")
    assert world.run() == ["x"]
    assert asked == ["x"]
    assert world.scheduler.plugins["Coscheduling"] == {
        "gangs": 1, "pods": 0, "waiting": 0, "boundInPart": 0, "mostRounds": 0,
    }  # fmt: skip


def test_pods_that_are_bound_together_say_with_how_many() -> None:
    world = ganged(3, 9)
    world.group("h", 1)
    for name, said in {"a": "g", "b": "g", "c": "g", "alone": "h", "other": ""}.items():
        world.come(name, said)
    told: dict[str, dict[str, str]] = {}
    driver = Driver(world.scheduler)
    for action in driver.actions(world.now):
        if isinstance(action.plan, Binding):
            told[action.decision.pod[1]] = dict(action.plan.annotations)
            world.confirm(action.decision.pod[1], action.decision.node)
    whole = {
        f"{domain}scheduling.koordinator.sh/bind-gang-{what}": value
        for domain in ("", "internal.")
        for what, value in (("group-id", "default/g"), ("member-count", "3"))
    }
    assert told == {"a": whole, "b": whole, "c": whole, "alone": {}, "other": {}}
    world.come("d", "g")
    world.pass_time(1)
    [action] = [one for one in driver.actions(world.now) if isinstance(one.plan, Binding)]
    assert isinstance(action.plan, Binding)
    assert not action.plan.annotations, "one that comes later is bound by itself"


def test_gangs_that_do_not_fit_rest_although_each_of_their_pods_would_fit_alone() -> None:
    world = World(diagnosing=True)
    world.build({"nodes": {"n0": {}}})
    for gang in "ab":
        for at in range(20):
            world.submit(f"{gang}{at}", member({"gang": gang, "minimum": "20"}))
    tried = 0
    for _ in range(100):
        while world.scheduler.schedule_one() is not None:
            tried += 1
        world.diagnose()
        world.pass_time(0.5)
    assert tried == 40, "nothing happened that could have helped"
    world.build({"nodes": {"n1": {}}})
    assert len(set(world.names())) == 40
    assert world.scheduler.cache.pod_count == 20, "now one of them fits"

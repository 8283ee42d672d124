"""PodGroups of Kubernetes' own: their pods are gangs, and their condition says how they stand."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import KUBERNETES_POD_GROUPS
from koordpolicy.model.gang import read_kubernetes_pod_group
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.pod_group_status import PodGroupStatus
from tests.unit.scheduler.test_gangs import Ganged
from tests.unit.scheduler.world import node

_GANG_OF_3: Final = {"gang": {"minCount": 3}}


def group(policy: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": policy, **more},
    }


class Site(Ganged):
    """A world over a store with the PodGroup `g`, and a node of four cores."""

    def __init__(self, policy: Mapping[str, Any], **more: Any) -> None:
        super().__init__()
        self.store = Store(lambda: self.now / NANOSECONDS)
        self.store.create(KUBERNETES_POD_GROUPS, group(policy, **more))
        self.keeper = PodGroupStatus(self.scheduler, MemoryCluster(self.store), lambda: self.now)
        self.scheduler.set_node(node("n0", {"allocatable": {"cpu": "4", "memory": "10Gi"}}))
        self.hear()

    def hear(self) -> None:
        found = read_kubernetes_pod_group(self.store.get(KUBERNETES_POD_GROUPS, "g"))
        self.scheduler.set_state(lambda state: state.pod_groups.set(found), Event.POD_GROUP_CHANGED)

    def put(self, name: str, where: str = "") -> None:
        spec = {
            "schedulerName": "koord-scheduler", "nodeName": where, "schedulingGroup": {"podGroupName": "g"},
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}],
        }  # fmt: skip
        self.scheduler.set_pod(
            read_pod({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec})
        )

    def placed(self) -> dict[str, str]:
        """Decide on all that is due: where pods go."""
        found = {}
        while (decision := self.scheduler.schedule_one()) is not None:
            if decision.node:
                found[decision.pod[1]] = decision.node
        return found

    def condition(self) -> dict[str, str]:
        """What is told once all that has happened is told."""
        self.hear()
        for name in self.keeper.changed():
            asyncio.run(self.keeper.reconcile(name))
        conditions = self.store.get(KUBERNETES_POD_GROUPS, "g").get("status", {}).get("conditions", [])
        return dict(conditions[-1]) if conditions else {}


def test_its_pods_are_placed_together_or_not_at_all() -> None:
    site = Site(_GANG_OF_3)
    site.put("a")
    site.put("b")
    assert site.placed() == {}, "three are needed"
    assert site.condition() == {}
    site.put("c")
    assert site.placed() == {}, "there is room for two"
    told = site.condition()
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert "Insufficient cpu" in told["message"]
    site.scheduler.set_node(node("n1", {"allocatable": {"cpu": "4", "memory": "10Gi"}}))
    site.pass_time(60)
    found = site.placed()
    assert len(found) == 3
    for name, where in found.items():
        site.put(name, where)
    later = site.condition()
    assert (later["status"], later["reason"], later["message"]) == ("True", "Scheduled", "")
    assert later["lastTransitionTime"] > told["lastTransitionTime"]
    site.hear()
    before = site.store.get(KUBERNETES_POD_GROUPS, "g")["metadata"]["resourceVersion"]
    for name in site.keeper.everything():
        assert asyncio.run(site.keeper.reconcile(name)) is False, "it stands there"
    assert site.store.get(KUBERNETES_POD_GROUPS, "g")["metadata"]["resourceVersion"] == before


def test_without_a_gang_its_pods_go_one_by_one() -> None:
    site = Site({"basic": {}})
    for name in "abc":
        site.put(name)
    assert len(site.placed()) == 2, "as many as there is room for"


def test_a_pod_whose_group_is_not_there_waits_for_it() -> None:
    site = Site(_GANG_OF_3)
    site.scheduler.set_state(
        lambda state: state.pod_groups.remove("default", "g", of_kubernetes=True), Event.POD_GROUP_CHANGED
    )
    for name in "ab":
        site.put(name)
    assert site.placed() == {}
    last = site.scheduler.last_decision(("default", "a"))
    assert last is not None
    assert "there is no PodGroup default/g" in last.message
    site.store.delete(KUBERNETES_POD_GROUPS, "g", namespace="default")
    site.store.create(KUBERNETES_POD_GROUPS, group({"gang": {"minCount": 2}}))
    site.hear()
    assert len(site.placed()) == 2


def test_beside_one_of_the_same_name_kubernetes_own_counts() -> None:
    site = Site(_GANG_OF_3)
    groups = site.scheduler.cache.state.pod_groups
    site.group("g", 5)
    assert groups.get(("default", "g")).minimum == 3  # type: ignore[union-attr]
    site.scheduler.set_state(
        lambda state: state.pod_groups.remove("default", "g", of_kubernetes=True), Event.POD_GROUP_CHANGED
    )
    assert groups.get(("default", "g")).minimum == 5  # type: ignore[union-attr]
    site.hear()
    assert groups.get(("default", "g")).minimum == 3  # type: ignore[union-attr]
    site.group("g", None)
    assert groups.get(("default", "g")).minimum == 3  # type: ignore[union-attr]
    site.scheduler.set_state(
        lambda state: state.pod_groups.remove("default", "g", of_kubernetes=True), Event.POD_GROUP_CHANGED
    )
    assert groups.get(("default", "g")) is None


_MORE: Final = {
    "resourceClaims": [{"name": "a", "resourceClaimName": "b"}],
    "disruptionMode": "PodGroup",
}


def test_what_it_asks_for_beside_its_gang_is_told() -> None:
    site = Site({"gang": {"minCount": 2}}, **_MORE)
    site.put("a")
    site.put("b")
    found = site.placed()
    assert len(found) == 2, "it is a gang all the same"
    for name, where in found.items():
        site.put(name, where)
    message = site.condition()["message"]
    pod = site.scheduler.cache.view(("default", "a"))
    assert pod is not None
    told = site.scheduler.cache.state.pod_groups.unheeded(pod.pod)
    assert message == f"Placed without what is not yet enforced: {', '.join(told)}"
    for name in (
        "claim a",
        "spec.resourceClaims",
        "spec.disruptionMode",
    ):
        assert name in message


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"schedulingConstraints": {"topology": "rack"}}, r"spec\.schedulingConstraints\.topology"),
        (
            {"schedulingConstraints": {"topology": [{"key": 1}]}},
            r"spec\.schedulingConstraints\.topology\[0\]\.key",
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {}]}},
            r"spec\.schedulingConstraints\.topology\[1\]\.key: name the node label",
        ),
        ({"resourceClaims": {"a": "b"}}, r"spec\.resourceClaims"),
    ],
)
def test_what_is_malformed_is_found_at_its_place(more: Mapping[str, Any], where: str) -> None:
    with pytest.raises(ObjectError, match=where):
        read_kubernetes_pod_group(group(_GANG_OF_3, **more))

"""The status of PodGroups as their pods come, are bound, run and end."""

import asyncio
from typing import Any, Final

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.kube import MergePatch
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import POD_GROUPS, PODS
from koordpolicy.model.gang import read_pod_group
from koordpolicy.model.pod import read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.pod_group_status import PodGroupStatus
from tests.unit.scheduler.test_gangs import Ganged
from tests.unit.scheduler.world import node

_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"


class Told(Ganged):
    """A world over a store, in which the status of the PodGroup `g` is kept up to date."""

    def __init__(self, minimum: int) -> None:
        super().__init__()
        self.store = Store(lambda: self.now / NANOSECONDS)
        self.store.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": minimum}})
        self.keeper = PodGroupStatus(self.scheduler, MemoryCluster(self.store), lambda: self.now)
        self.scheduler.set_node(node("n0", {}))

    def put(self, name: str, phase: str = "Pending", where: str = "") -> None:
        """A pod is as this says; those that are over are not heard of any more."""
        metadata = {
            "name": name, "namespace": "default", "uid": name, "labels": {_LABEL: "g"},
            "ownerReferences": [{"kind": "Job", "name": "train", "uid": "u", "apiVersion": "batch/v1"}],
        }  # fmt: skip
        spec = {
            "schedulerName": "koord-scheduler",
            "nodeName": where,
            "containers": [{"name": "c", "image": "i"}],
        }
        obj: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
        if phase in ("Succeeded", "Failed"):
            self.store.create(PODS, obj)
            ended = MergePatch({"status": {"phase": phase}})
            self.store.patch(PODS, name, ended, namespace="default", subresource="status")
            self.scheduler.remove_pod(("default", name))
        else:
            self.scheduler.set_pod(read_pod(obj))

    def hear(self) -> None:
        """The PodGroup as it is in the store is heard of."""
        obj = self.store.get(POD_GROUPS, "g")
        self.scheduler.set_state(
            lambda state: state.pod_groups.set(read_pod_group(obj)), Event.POD_GROUP_CHANGED
        )

    def status(self) -> dict[str, Any]:
        """The status once all that has happened is told."""
        self.hear()
        for name in self.keeper.changed():
            asyncio.run(self.keeper.reconcile(name))
        return dict(self.store.get(POD_GROUPS, "g").get("status", {}))


def test_it_goes_through_its_phases() -> None:
    world = Told(2)
    assert world.status() == {"phase": "Pending"}
    world.put("a")
    assert world.status() == {"phase": "Pending"}
    world.put("b")
    found = world.status()
    assert (found["phase"], found["occupiedBy"], found["scheduled"]) == ("Scheduling", "default/train", 0)
    began = found["scheduleStartTime"]
    world.put("a", where="n0")
    world.put("b", where="n0")
    found = world.status()
    assert (found["phase"], found["scheduled"], found["scheduleStartTime"]) == ("Scheduled", 2, began)
    world.put("a", "Running", "n0")
    world.put("b", "Running", "n0")
    assert world.status()["phase"] == "Running"
    world.put("a", "Succeeded", "n0")
    found = world.status()
    assert (found["phase"], found["succeeded"], found["running"]) == ("Running", 1, 1)
    world.put("b", "Succeeded", "n0")
    assert world.status()["phase"] == "Finished"


def test_what_is_told_already_is_not_written_again() -> None:
    world = Told(1)
    world.put("a", where="n0")
    world.status()
    world.hear()
    version = world.store.get(POD_GROUPS, "g")["metadata"]["resourceVersion"]
    for name in world.keeper.everything():
        assert asyncio.run(world.keeper.reconcile(name)) is False
    assert world.store.get(POD_GROUPS, "g")["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize("phase", ["Finished", "Failed"])
def test_one_that_has_ended_is_left_alone(phase: str) -> None:
    world = Told(1)
    obj = world.store.get(POD_GROUPS, "g")
    world.store.update(POD_GROUPS, {**obj, "status": {"phase": phase}})
    world.put("a", where="n0")
    assert world.status() == {"phase": phase}


def test_one_that_is_gone_is_no_trouble() -> None:
    world = Told(1)
    world.status()
    world.store.delete(POD_GROUPS, "g", namespace="default")
    world.put("a", where="n0")
    for name in world.keeper.changed():
        assert asyncio.run(world.keeper.reconcile(name)) is False

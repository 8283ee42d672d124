"""Volumes: chosen with the node, assumed at once, written before the pod is bound."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.state import ClusterState
from koordpolicy.cluster.volume_plan import VolumeBind, VolumePlan
from koordpolicy.kube import Conflict, MergePatch, Resource
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.volumes import read_claim, read_storage_class, read_volume
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Prebind, WriteOutcome, apply
from koordpolicy.scheduler.driver import Action, Driver
from koordpolicy.scheduler.plugins.base import Sleep
from koordpolicy.scheduler.plugins.volumes.prebind import ASKED
from tests.unit.scheduler.world import PROFILE, World, pod, policies


def volume(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "local",
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/data"},
            **spec,
        },
        "status": {"phase": "Available"},
    }


def on_node(node: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


def claim(name: str, storage: str = "local", size: str = "1Gi") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "storageClassName": storage,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }


def storage_class(
    name: str, provisioner: str = "kubernetes.io/no-provisioner", **more: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def using(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]}


def world_of(*objects: dict[str, Any], nodes: int = 2) -> World:
    """A world with nodes n0, n1, ..., labelled with their names, and objects of storage."""
    world = World()
    world.build({"nodes": {f"n{at}": {"labels": {"host": f"n{at}"}} for at in range(nodes)}})
    for one in objects:
        hear(world, one)
    return world


def hear(world: World, obj: Mapping[str, Any]) -> None:
    def tell(state: ClusterState) -> bool | None:
        if "provisioner" in obj:
            return state.volumes.set_class(read_storage_class(obj))
        if "capacity" in obj["spec"]:
            return state.volumes.set_volume(read_volume(obj))
        return state.volumes.set_claim(read_claim(obj))

    world.scheduler.set_state(tell, Event.VOLUMES_CHANGED)


def planned(decision: PodDecision) -> VolumePlan:
    """What is to be bound for a pod."""
    found = decision.claims["VolumeBinding"]
    assert isinstance(found, VolumePlan)
    return found


# --- decisions -----------------------------------------------------------------------------------


def test_the_smallest_volume_that_suffices() -> None:
    world = world_of(
        storage_class("local"),
        claim("c", size="2Gi"),
        volume("small", "1Gi", **on_node("n1")),
        volume("large", "9Gi", **on_node("n1")),
        volume("right", "2Gi", **on_node("n1")),
    )
    decision = world.place("p", using("c"))
    assert planned(decision) == VolumePlan("n1", (VolumeBind("right", ("default", "c"), "uid-c"),))


@pytest.mark.parametrize(
    ("there", "line"),
    [
        ([], 'persistentvolumeclaim "a" not found: 1 may take it once the claim a is there'),
        (
            [{**claim("a", "fast")}],
            "pod has unbound immediate PersistentVolumeClaims: 1 may take it once the claim a is bound",
        ),
        (
            [{**claim("a"), "status": {"phase": "Lost"}}],
            'persistentvolumeclaim "a" bound to non-existent persistentvolume "": 1 may take it once the claim a is made anew',
        ),
    ],
    ids=["missing", "unbound", "lost"],
)
def test_what_has_to_become_of_a_claim_is_told(there: list[dict[str, Any]], line: str) -> None:
    world = World(diagnosing=True)
    world.build({"nodes": {"a": {}}})
    for one in there:
        hear(world, one)
    assert not world.place("p", using("a")).placed
    (told,) = world.diagnose()
    assert told.message.split("\n")[1:] == [f"1 node: {line}."]


def test_two_claims_of_a_pod_get_two_volumes_the_larger_one_the_larger() -> None:
    world = world_of(
        storage_class("local"),
        claim("big", size="2Gi"),
        claim("small"),
        volume("v2", "2Gi"),
        volume("v1", "1Gi"),
    )
    binds = planned(world.place("p", using("big", "small"))).binds
    assert {(one.claim[1], one.volume) for one in binds} == {("small", "v1"), ("big", "v2")}


def test_a_volume_is_promised_once() -> None:
    world = world_of(storage_class("local"), claim("a"), claim("b"), volume("only"))
    assert world.place("p", using("a")).placed
    (refused,) = world.place("q", using("b")).refusals
    assert (refused.filter, refused.nodes, refused.resolvable) == ("VolumeBinding", 2, False)
    assert refused.reason == "node(s) didn't find available persistent volumes to bind"


def test_what_did_not_come_about_is_given_back() -> None:
    world = world_of(storage_class("local"), claim("a"), claim("b"), volume("only"))
    assert world.place("p", using("a")).placed
    world.scheduler.forget(pod("p", using("a")))
    decision = world.place("q", using("b"))
    assert [one.volume for one in planned(decision).binds] == ["only"]


def test_pods_that_share_a_claim_go_to_the_node_that_was_chosen_for_it() -> None:
    world = world_of(storage_class("made", "disk.example.com"), claim("c", "made"), nodes=4)
    first = world.place("p", using("c"))
    assert planned(first) == VolumePlan(first.node, (), (("default", "c"),))
    second = world.place("q", using("c"))
    assert (second.node, second.feasible) == (first.node, 1)


def test_a_claim_stays_where_another_pod_has_it_made() -> None:
    world = world_of(storage_class("made", "disk.example.com"), claim("c", "made"), nodes=4)
    assert world.place("p", using("c")).placed
    second = world.place("q", using("c"))
    world.scheduler.forget(pod("p", using("c")))
    third = world.place("r", using("c"))
    assert (third.node, third.feasible) == (second.node, 1)
    assert len(world.scheduler.cache.state.volumes.planned) == 2


def test_a_claim_that_a_pod_waits_for_lets_it_in_when_it_comes() -> None:
    world = world_of(storage_class("local"), volume("v", **on_node("n1")))
    assert not world.place("p", using("c")).placed
    world.pass_time(60)
    hear(world, claim("c"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.node == "n1"


def test_news_without_a_difference_wake_nobody() -> None:
    world = world_of(storage_class("local"), claim("c"), volume("v"))
    assert not world.place("p", using("c", "d")).placed
    world.pass_time(60)
    for one in (claim("c"), volume("v")):
        hear(world, one)
    assert world.scheduler.schedule_one() is None
    hear(world, claim("d"))
    assert world.scheduler.schedule_one() is not None


def test_policy_says_how_long_volumes_are_waited_for() -> None:
    world = World(policies({"parameters": {"bindTimeout": "90s"}}))
    world.build({"nodes": {"n0": {}}})
    for one in (storage_class("local"), claim("c"), volume("v")):
        hear(world, one)
    assert planned(world.place("p", using("c"))).within == 90


# --- writes --------------------------------------------------------------------------------------


class Rim:
    """A cluster in memory with what the tests begin with, and a scheduler that hears of it."""

    def __init__(self) -> None:
        self.world = World()
        store = Store(lambda: self.world.now / NANOSECONDS)
        self.cluster = MemoryCluster(store, before_request=self.count)
        self.driver = Driver(self.world.scheduler)
        self.pauses = 0
        self.asked = 0
        self.hears = True

    async def count(self, verb: str, _resource: Resource) -> None:
        self.asked += verb == "get"

    async def begin(self, storage: dict[str, Any], *volumes: dict[str, Any]) -> None:
        node = {
            "metadata": {"name": "n0", "labels": {"host": "n0"}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        }
        self.world.scheduler.set_node(read_node(await self.cluster.create(NODES, node)))
        hear(self.world, await self.cluster.create(STORAGE_CLASSES, storage))
        for one in volumes:
            made = await self.cluster.create(PERSISTENT_VOLUMES, one)
            hear(self.world, {**made, "status": {"phase": "Available"}})
        wanted = claim("c", storage["metadata"]["name"])
        hear(
            self.world,
            await self.cluster.create(PERSISTENT_VOLUME_CLAIMS, wanted, namespace="default"),
        )
        waiting = {
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {
                "schedulerName": PROFILE,
                "containers": [{"name": "main", "image": "web"}],
                **using("c"),
            },
        }
        await self.cluster.create(PODS, waiting, namespace="default")

    async def decide(self) -> Action:
        found = read_pod(await self.cluster.get(PODS, "p", namespace="default"))
        self.world.scheduler.set_pod(found)
        (action,) = self.driver.actions(self.world.now)
        assert isinstance(action.plan, Prebind)
        return action

    async def carry_out(self, action: Action, sleep: Sleep) -> WriteOutcome:
        """An action, and what follows from it: what comes of the last one."""
        assert action.plan is not None
        outcome = await apply(self.cluster, action.plan, sleep=sleep)
        then = self.driver.done(action, outcome)
        return outcome if then is None else await self.carry_out(then, sleep)

    async def change_claim(self, patch: dict[str, Any]) -> None:
        await self.cluster.patch(PERSISTENT_VOLUME_CLAIMS, "c", MergePatch(patch), namespace="default")

    async def bound(self, seconds: float) -> None:
        """A pause in which the cluster's controllers bind the claim, the third time."""
        self.pauses += 1
        if self.pauses == 3:
            await self.change_claim(
                {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": "v"}}
            )
            if self.hears:
                wanted = await self.cluster.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
                hear(self.world, wanted)

    async def given_up(self, seconds: float) -> None:
        """A pause in which the driver finds that it cannot make a volume for the node."""
        await self.change_claim({"metadata": {"annotations": {SELECTED_NODE: None}}})

    async def node_of_pod(self) -> str:
        return read_pod(await self.cluster.get(PODS, "p", namespace="default")).node_name


def test_a_volume_is_bound_before_the_pod() -> None:
    async def run() -> None:
        here = Rim()
        await here.begin(storage_class("local"), volume("v", **on_node("n0")))
        action = await here.decide()

        async def pause(seconds: float) -> None:
            assert not await here.node_of_pod(), "the pod waits for its volume"
            await here.bound(seconds)

        outcome = await here.carry_out(action, pause)
        assert outcome.error is None
        assert here.pauses == 3
        found = await here.cluster.get(PERSISTENT_VOLUMES, "v")
        wanted = await here.cluster.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        assert found["spec"]["claimRef"]["uid"] == wanted["metadata"]["uid"]
        assert found["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
        assert await here.node_of_pod() == "n0"
        version = found["metadata"]["resourceVersion"]
        assert action.plan is not None
        await apply(here.cluster, action.plan, sleep=pause)
        again = await here.cluster.get(PERSISTENT_VOLUMES, "v")
        assert again["metadata"]["resourceVersion"] == version, "written once"

    asyncio.run(run())


def test_a_volume_is_asked_for_on_the_node() -> None:
    async def run() -> None:
        here = Rim()
        await here.begin(storage_class("made", "disk.example.com"))
        action = await here.decide()
        assert (await here.carry_out(action, here.bound)).error is None
        found = await here.cluster.get(PERSISTENT_VOLUME_CLAIMS, "c", namespace="default")
        assert found["metadata"]["annotations"][SELECTED_NODE] == "n0"
        assert await here.node_of_pod() == "n0"

    asyncio.run(run())


def test_a_driver_that_gives_up_sends_the_pod_back() -> None:
    async def run() -> None:
        here = Rim()
        await here.begin(storage_class("made", "disk.example.com"))
        action = await here.decide()
        outcome = await here.carry_out(action, here.given_up)
        assert outcome.lost
        assert "no volume could be made for the claim `c`" in str(outcome.error)
        assert not await here.node_of_pod()

    asyncio.run(run())


def test_a_volume_that_another_claim_got_meanwhile_is_a_conflict() -> None:
    async def run() -> None:
        here = Rim()
        await here.begin(storage_class("local"), volume("v"))
        action = await here.decide()
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "other", "uid": "u"}
        patch = MergePatch({"spec": {"claimRef": reference}})
        await here.cluster.patch(PERSISTENT_VOLUMES, "v", patch)
        outcome = await here.carry_out(action, here.bound)
        assert isinstance(outcome.error, Conflict)
        assert "default/other" in str(outcome.error)

    asyncio.run(run())


def test_a_claim_that_nothing_is_heard_of_is_asked_for_seldom() -> None:
    async def run() -> None:
        here = Rim()
        here.hears = False
        await here.begin(storage_class("local"), volume("v"))
        action = await here.decide()
        here.asked = 0
        assert (await here.carry_out(action, here.bound)).error is None
        assert (here.pauses, here.asked) == (ASKED, 3), "the volume, and the claim twice"

    asyncio.run(run())


def test_volumes_are_not_waited_for_without_end() -> None:
    async def run() -> None:
        here = Rim()
        await here.begin(storage_class("local"), volume("v"))
        action = await here.decide()
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)

        outcome = await here.carry_out(action, pause)
        assert outcome.lost
        assert sum(pauses) == planned(action.decision).within == 600

    asyncio.run(run())

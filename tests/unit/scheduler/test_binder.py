"""Decisions applied to a cluster: bound, or a condition that says why not."""

import asyncio
from typing import Any

from koordpolicy.kube import Conflict, MergePatch, NotFound
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS, PRIORITY_CLASSES
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import PodDecision
from koordpolicy.scheduler.binder import Binding, Preempt, Report, apply, plan
from koordpolicy.scheduler.decision import CycleFailure, Victim
from tests.unit.scheduler.world import START, World

NODE = {
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def pod_of(cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"schedulerName": "koord-scheduler", "containers": [container]},
    }


class Rim:
    """A cluster with one node and one pod, and a scheduler that sees both."""

    def __init__(self, cluster: MemoryCluster, world: World) -> None:
        self.cluster = cluster
        self.world = world

    async def pod(self) -> Pod:
        return read_pod(await self.cluster.get(PODS, "x", namespace="default"))

    async def decide(self) -> PodDecision:
        self.world.scheduler.set_pod(await self.pod())
        decision = self.world.scheduler.schedule_one()
        assert decision is not None
        return decision


async def rim(cpu: str) -> Rim:
    world = World()
    cluster = MemoryCluster(Store(lambda: world.now / NANOSECONDS))
    world.scheduler.set_node(read_node(await cluster.create(NODES, NODE)))
    await cluster.create(PODS, pod_of(cpu), namespace="default")
    return Rim(cluster, world)


def test_a_placed_pod_is_bound_once() -> None:
    async def run() -> None:
        here = await rim("1")
        decision = await here.decide()
        before = await here.pod()
        planned = plan(decision, before, here.world.now)
        assert planned == Binding(("default", "x"), before.uid, "a")
        assert (await apply(here.cluster, planned)).error is None
        bound = await here.pod()
        assert bound.node_name == "a"
        assert plan(decision, bound, here.world.now) is None, "nothing is left to write"
        here.world.scheduler.set_pod(bound)
        assert not here.world.scheduler.ledger.assumed(bound.key)
        again = await apply(here.cluster, planned)
        assert isinstance(again.error, Conflict)
        assert again.lost

    asyncio.run(run())


def test_a_pending_pod_says_why() -> None:
    async def run() -> None:
        here = await rim("5")
        decision = await here.decide()
        planned = plan(decision, await here.pod(), here.world.now)
        message = (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        assert planned == Report(("default", "x"), "Unschedulable", message, START)
        assert (await apply(here.cluster, planned)).error is None
        told = await here.pod()
        condition = told.condition("PodScheduled")
        assert condition is not None
        assert (condition.status, condition.reason, condition.since) == ("False", "Unschedulable", START)
        assert plan(decision, told, here.world.now) is None, "it says so already"

    asyncio.run(run())


def test_another_reason_keeps_the_time_of_the_first() -> None:
    async def run() -> None:
        here = await rim("5")
        first = plan(await here.decide(), await here.pod(), here.world.now)
        assert first is not None
        await apply(here.cluster, first)
        here.world.pass_time(600)
        here.world.scheduler.remove_node("a")
        again = here.world.scheduler.schedule_one()
        assert again is not None
        planned = plan(again, await here.pod(), here.world.now)
        assert isinstance(planned, Report)
        assert (planned.message, planned.since) == ("0/0 nodes are available.", START)

    asyncio.run(run())


def test_a_pod_that_is_gone_is_lost() -> None:
    async def run() -> None:
        here = await rim("1")
        planned = plan(await here.decide(), await here.pod(), here.world.now)
        assert planned is not None
        await here.cluster.delete(PODS, "x", namespace="default", grace_seconds=0)
        outcome = await apply(here.cluster, planned)
        assert isinstance(outcome.error, NotFound)
        assert outcome.lost

    asyncio.run(run())


def test_a_question_that_failed_is_the_scheduler_s_error() -> None:
    problem = PodDecision(("default", "x"), "", "", 3, 0, failure=CycleFailure("`strategy` is `Best`"))
    planned = plan(problem, Pod("x"), START)
    assert isinstance(planned, Report)
    assert planned.reason == "SchedulerError"


def test_room_is_made_by_sending_pods_away() -> None:
    async def run() -> None:
        here = await rim("3")
        await here.cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "low"}, "value": -10})
        small = pod_of("2")
        small["metadata"]["name"] = "small"
        small["spec"] |= {"nodeName": "a", "priorityClassName": "low"}
        here.world.scheduler.set_pod(read_pod(await here.cluster.create(PODS, small)))
        here.world.scheduler.set_pod(await here.pod())
        decision = here.world.scheduler.schedule_one()
        assert decision is not None
        planned = plan(decision, await here.pod(), here.world.now)
        assert isinstance(planned, Preempt)
        assert (await apply(here.cluster, planned)).error is None
        waiting = await here.pod()
        assert waiting.nominated_node == "a"
        leaving = read_pod(await here.cluster.get(PODS, "small"))
        condition = leaving.condition("DisruptionTarget")
        assert condition is not None
        assert (leaving.terminating, condition.reason) == (True, "PreemptionByScheduler")
        assert (await apply(here.cluster, planned)).error is None, "nothing is left to do"

        here.world.scheduler.remove_pod(("default", "small"))
        here.world.pass_time(60)
        decision = here.world.scheduler.schedule_one()
        assert decision is not None
        assert decision.node == "a"

    asyncio.run(run())


def test_a_pod_that_waits_no_longer_says_so() -> None:
    async def run() -> None:
        here = await rim("5")
        await here.cluster.patch(
            PODS, "x", MergePatch({"status": {"nominatedNodeName": "gone"}}), subresource="status"
        )
        decision = await here.decide()
        planned = plan(decision, await here.pod(), here.world.now)
        assert isinstance(planned, Report)
        assert planned.nominated == ""
        await apply(here.cluster, planned)
        assert (await here.pod()).nominated_node == ""

    asyncio.run(run())


def test_pods_beside_are_told_of_their_nodes_too_and_those_that_are_gone_do_not_matter() -> None:
    async def run() -> None:
        here = await rim("1")
        mate = pod_of("1")
        mate["metadata"]["name"] = "mate"
        await here.cluster.create(PODS, mate)
        report = Report(("default", "x"), "Unschedulable", "no room", START, "a")
        victim = Victim(("default", "victim"), "uid", node="a")  # it has gone by itself meanwhile
        beside = ((("default", "mate"), "a"), (("default", "gone"), "a"))
        outcome = await apply(here.cluster, Preempt(report, (victim,), (), START, beside))
        assert outcome.error is None
        for name in ("x", "mate"):
            assert read_pod(await here.cluster.get(PODS, name, namespace="default")).nominated_node == "a"

    asyncio.run(run())

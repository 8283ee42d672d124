"""Controllers on a cluster that answers writes with 409, 429, 503, or not at all though it wrote: they end where a calm day ends."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Conflict, KubeError, TooManyRequests, Unreachable
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS, NODE_SLOS, NODES, Resource
from koordpolicy.manager.controllers.node_slo import NodeSLOController
from koordpolicy.manager.controllers.quota_profile import KnownQuotaObjects, QuotaProfileController
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.workqueue import Reconcile, WorkQueue
from tests.unit.manager.clusters import SmallCluster
from tests.unit.runtime.scenes import running, until
from tests.vectors.policies import document, graph

NODE_NAMES = [f"n{at}" for at in range(8)]


class StormyCluster(MemoryCluster):
    """Of the next `trouble` writes most fail, some of them after they were done."""

    def __init__(self, small: SmallCluster, seed: int, trouble: int) -> None:
        super().__init__(small.store)
        self._random = random.Random(seed)
        self.trouble = trouble
        self.done = 0

    async def _through(self, write: Callable[[], Awaitable[Object]]) -> Object:
        if self.trouble > 0:
            self.trouble -= 1
            errors: list[KubeError | None] = [
                Conflict("somebody was quicker"),
                TooManyRequests("slow down", retry_after=0.001),
                Unreachable("no answer"),
                None,
            ]
            error = self._random.choice(errors)
            if error is not None:
                if isinstance(error, Unreachable) and self._random.random() < 0.5:
                    await write()
                raise error
        self.done += 1
        return await write()

    async def create(self, resource: Resource, obj: Object, **more: Any) -> Object:
        return await self._through(lambda: super(StormyCluster, self).create(resource, obj, **more))

    async def patch(self, resource: Resource, name: str, patch: Any, **more: Any) -> Object:
        return await self._through(lambda: super(StormyCluster, self).patch(resource, name, patch, **more))


FAILING = {"resource": "batch", "abnormal": {"when": {"cel": "node.name == 'n1'"}, "after": "0s"}}
"""One of the nodes is abnormal, which its annotation says as well."""


class Scene:
    """A cluster of eight nodes with one profile of quotas, and what a controller does to it."""

    def __init__(self, controller: str, seed: int = 0, trouble: int = 0) -> None:
        self.small = SmallCluster(graph(document("Overcommit", "failing", FAILING)))
        for name in NODE_NAMES:
            self.small.node(name)
            self.small.report(name)
        for at in range(4):
            self.small.create(
                ELASTIC_QUOTA_PROFILES,
                {"metadata": {"name": f"p{at}"}, "spec": {"quotaName": f"root-{at}", "nodeSelector": {}}},
            )
        self.cluster = StormyCluster(self.small, seed, trouble)
        made: tuple[list[str], Reconcile] = getattr(self, f"_{controller}")()
        self.names, self._reconcile = made

    def _overcommit(self) -> tuple[list[str], Reconcile]:
        async def reconcile(name: str) -> bool:
            decided = await self.small.controller.reconcile(self.cluster, name)
            return decided is not None and bool(decided.writes)

        return NODE_NAMES, reconcile

    def _node_slo(self) -> tuple[list[str], Reconcile]:
        controller = NodeSLOController(
            lambda node, labels: self.small.graph,
            self.small.objects,
            lambda name: self.small.store.find(NODE_SLOS, name),
            lambda: self.small.nanoseconds,
        )
        return NODE_NAMES, lambda name: controller.reconcile(self.cluster, name)

    def _quota_profile(self) -> tuple[list[str], Reconcile]:
        mirrors = {ELASTIC_QUOTA_PROFILES: Mirror(), ELASTIC_QUOTAS: Mirror()}
        controller = QuotaProfileController(
            lambda: self.small.graph,
            KnownQuotaObjects(
                mirrors[ELASTIC_QUOTA_PROFILES].objects,
                mirrors[ELASTIC_QUOTAS].objects,
                lambda: self.small.objects.nodes,
            ),
            lambda: self.small.nanoseconds,
        )

        async def reconcile(name: str) -> bool:
            for resource, mirror in mirrors.items():
                listed = self.small.store.list(resource)
                mirror.replace(listed.items, listed.resource_version)
            return await controller.reconcile(self.cluster, ("default", name))

        return [f"p{at}" for at in range(4)], reconcile

    def run(self) -> None:
        """Until every name was looked at and nothing was left to write."""

        async def play() -> None:
            settled: set[str] = set()
            queue = WorkQueue("storm", Metrics("test"), Backoff(lambda: 0.0, initial=0.001, longest=0.01))

            async def reconcile(name: str) -> bool:
                self.small.look()
                wrote = await self._reconcile(name)
                if wrote:
                    settled.discard(name)
                    queue.add(name)
                else:
                    settled.add(name)
                return wrote

            async with running(queue.run(reconcile, workers=3)):
                for name in self.names:
                    queue.add(name)
                await until(lambda: len(settled) == len(self.names))

        asyncio.run(play())

    def outcome(self) -> list[object]:
        """What stands in the cluster, without what counts and dates it."""
        nodes = [(one["metadata"].get("annotations"), one["status"]) for one in self._all(NODES)]
        quotas = [(one["metadata"]["labels"], one["spec"]) for one in self._all(ELASTIC_QUOTAS)]
        return [nodes, [one["spec"] for one in self._all(NODE_SLOS)], quotas]

    def _all(self, resource: Resource) -> list[Object]:
        return sorted(self.small.store.list(resource).items, key=lambda one: str(one["metadata"]["name"]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("controller", ["overcommit", "node_slo", "quota_profile"])
def test_a_storm_ends_where_a_calm_day_ends(controller: str, seed: int) -> None:
    calm, stormy = Scene(controller), Scene(controller, seed, trouble=40)
    before = calm.outcome()
    calm.run()
    stormy.run()
    assert calm.outcome() != before
    assert stormy.outcome() == calm.outcome()
    done = stormy.cluster.done
    stormy.run()
    assert stormy.cluster.done == done, "what is as it should be is not written"


@pytest.mark.parametrize("hours", [-24 * 365, 24 * 365])
@pytest.mark.parametrize("controller", ["node_slo", "quota_profile"])
def test_a_clock_that_jumps_writes_nothing(controller: str, hours: int) -> None:
    scene = Scene(controller)
    scene.run()
    done = scene.cluster.done
    scene.small.seconds += hours * 3600
    scene.run()
    assert scene.cluster.done == done


def test_a_clock_that_jumps_forward_makes_reports_old_and_back_heals_it() -> None:
    scene = Scene("overcommit")
    scene.run()
    offered = scene.small.offered("n0")
    assert offered
    scene.small.seconds += 24 * 3600
    scene.run()
    assert scene.small.offered("n0") == {}
    scene.small.seconds -= 24 * 3600
    scene.run()
    assert scene.small.offered("n0") == offered

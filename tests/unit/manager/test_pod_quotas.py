"""Pods that are created at the same time, on replicas that hear of quotas late: together they never exceed their quota."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Conflict, KubeError, Unreachable
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.resources import ELASTIC_QUOTAS, NAMESPACES, PODS, Resource
from koordpolicy.manager.serving import MirroredObjects
from koordpolicy.manager.webhooks.pod_quotas import PodQuotaAdmission, counted_pods
from koordpolicy.manager.webhooks.webhook import QuotaWrites, WebhookContext
from koordpolicy.model.protocol import QUOTA_NAME
from koordpolicy.model.quota import read_quota
from tests.vectors.policies import document, graph

READ = (NAMESPACES, ELASTIC_QUOTAS)
LIMIT = 7


def counted(**more: Any) -> RuleGraph:
    return graph(document("QuotaTree", "counted", {"admission": {"enabled": True, **more}}))


def asked(name: str, quota: str, cpu: int = 1, *, dry_run: bool = False) -> AdmissionRequest:
    resources = {"requests": {"cpu": str(cpu)}}
    pod = {
        "metadata": {"name": name, "namespace": "default", "labels": {QUOTA_NAME: quota}},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]},
    }
    return AdmissionRequest(Operation.CREATE, PODS, "", "default", name, pod, None, dry_run=dry_run)


@dataclass
class Replicas:
    """Webhooks of several processes on one cluster. `writes` counts requests by method."""

    store: Store
    handlers: list[PodQuotaAdmission]
    writes: Counter[str]
    tasks: list[asyncio.Task[None]]
    on_patch: Callable[[], Awaitable[None]] | None = None
    """Awaited before each write; it may raise as a network does."""

    async def ask(self, at: int, request: AdmissionRequest) -> str:
        """Why a replica refuses a pod; empty where it does not."""
        try:
            answer = await self.handlers[at % len(self.handlers)].answer(request)
        except KubeError as error:
            return f"{error.code}: {error.message}"
        return "" if answer is None or answer.allowed else answer.message

    def used(self, quota: str) -> int:
        """Millicores that are counted in a quota."""
        found = read_quota(self.store.get(ELASTIC_QUOTAS, quota, namespace="default"))
        return found.child_request.get("cpu", 0)


async def replicas(count: int, policies: RuleGraph, quotas: int = 1, seed: int = 0) -> Replicas:
    """Replicas that know a cluster with quotas `q0`, `q1`... of 7 CPUs each; what they send takes a random time."""
    drawn = random.Random(seed)
    store = Store(lambda: 0)
    for at in range(quotas):
        store.create(
            ELASTIC_QUOTAS,
            {"metadata": {"name": f"q{at}"}, "spec": {"max": {"cpu": str(LIMIT)}}},
            namespace="default",
        )
    made = Replicas(store, [], Counter(), [])

    async def under_way(method: str, resource: Resource) -> None:
        made.writes[method] += 1
        if made.on_patch is not None and method == "patch":
            await made.on_patch()
        for _ in range(drawn.randrange(6)):
            await asyncio.sleep(0)

    for _ in range(count):
        cluster = MemoryCluster(store, before_request=under_way)
        mirrors = {resource: Mirror() for resource in READ}
        for resource, mirror in mirrors.items():
            informer = Informer(cluster, resource, mirror, Backoff(drawn.random))
            made.tasks.append(asyncio.create_task(informer.run()))
            await informer.wait_synced()
        context = WebhookContext(
            lambda: policies,
            MirroredObjects(mirrors),
            lambda: 0,
            lambda: 50.0,
            quota_writes=QuotaWrites(cluster),
        )
        made.handlers.append(PodQuotaAdmission(context))
    made.writes.clear()
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("read_again", [False, True])
def test_many_pods_at_once_never_exceed_their_quota(seed: int, *, read_again: bool) -> None:
    async def run() -> None:
        policies = counted(readAgain=read_again, retries=100, retryJitter="1ms", workers=2)
        there = await replicas(3, policies, quotas=4, seed=seed)
        requests = [asked(f"p{at}", f"q{at % 4}") for at in range(80)]
        said = await asyncio.gather(*(there.ask(at, one) for at, one in enumerate(requests)))
        for quota in range(4):
            mine = said[quota::4]
            assert mine.count("") == LIMIT
            assert set(mine) == {
                "",
                f"exceeded quota: default/q{quota}, requested: cpu=1, used: cpu=7, limited: cpu=7",
            }
            assert there.used(f"q{quota}") == LIMIT * 1000

    asyncio.run(run())


def test_pods_that_come_together_are_counted_in_few_writes() -> None:
    async def run() -> None:
        there = await replicas(1, counted())
        requests = [asked(f"p{at}", "q0") for at in range(50)]
        said = await asyncio.gather(*(there.ask(0, one) for one in requests))
        assert said.count("") == LIMIT
        assert there.writes["patch"] <= 2

    asyncio.run(run())


def test_what_was_written_counts_before_the_cluster_tells_of_it() -> None:
    async def run() -> None:
        there = await replicas(1, counted())
        for task in there.tasks:  # nothing is heard of any more
            task.cancel()
        said = [await there.ask(0, asked(f"p{at}", "q0", cpu=3)) for at in range(3)]
        assert [bool(one) for one in said] == [False, False, True]
        assert there.writes["patch"] == 2

    asyncio.run(run())


def test_a_write_that_others_forestall_is_tried_again_only_so_often() -> None:
    async def run() -> None:
        there = await replicas(1, counted(retries=2, readAgain=True))

        async def forestall() -> None:
            raise Conflict("somebody else was quicker")

        there.on_patch = forestall
        assert await there.ask(0, asked("a", "q0")) == "409: somebody else was quicker"
        assert there.writes == {"patch": 3, "get": 2}

    asyncio.run(run())


def test_a_cluster_that_is_away_lets_nobody_in() -> None:
    async def run() -> None:
        there = await replicas(1, counted())

        async def away() -> None:
            raise Unreachable("away")

        there.on_patch = away
        assert "away" in await there.ask(0, asked("a", "q0"))
        there.on_patch = None
        assert await there.ask(0, asked("b", "q0")) == ""
        assert there.used("q0") == 1000

    asyncio.run(run())


def test_a_dry_run_is_told_and_not_counted() -> None:
    async def run() -> None:
        there = await replicas(1, counted())
        assert await there.ask(0, asked("a", "q0", cpu=7, dry_run=True)) == ""
        assert "exceeded quota" in await there.ask(0, asked("b", "q0", cpu=8, dry_run=True))
        assert not there.writes
        assert there.used("q0") == 0

    asyncio.run(run())


def test_whoever_waits_too_long_is_refused_and_not_counted() -> None:
    async def run() -> None:
        there = await replicas(1, counted(timeout="20ms"))
        begun, held = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            begun.set()
            await held.wait()

        there.on_patch = hold
        first = asyncio.create_task(there.ask(0, asked("a", "q0")))
        await begun.wait()
        second = asyncio.create_task(there.ask(0, asked("b", "q0")))
        assert await first == await second == "the quota q0 could not be written to in time"
        held.set()
        for _ in range(50):
            await asyncio.sleep(0)
        # The first is counted, as its write was under way; the second, which still waited, is not.
        assert there.used("q0") == 1000

    asyncio.run(run())


def test_quotas_of_one_name_in_two_namespaces_take_no_pods() -> None:
    async def run() -> None:
        there = await replicas(1, counted())
        there.store.create(NAMESPACES, {"metadata": {"name": "web"}})
        there.store.create(
            ELASTIC_QUOTAS, {"metadata": {"name": "q0"}, "spec": {"max": {"cpu": "1"}}}, namespace="web"
        )
        for _ in range(50):
            await asyncio.sleep(0)
        for dry_run in (False, True):
            said = await there.ask(0, asked("a", "q0", dry_run=dry_run))
            assert said == "several quotas have the name q0, in the namespaces default, web"

    asyncio.run(run())


def test_api_servers_ask_where_pods_may_be_counted() -> None:
    assert counted_pods(graph()) is None
    scope = counted_pods(counted(timeout="8s"))
    assert scope is not None
    assert ({str(one) for one in scope.operations}, scope.timeout) == ({"CREATE"}, 10)

"""Who tells of a node's pods, and what holds while nobody does."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from koordpolicy.agent.node_pods import node_pods, running_containers
from koordpolicy.agent.pods import KubeletPods, PodAnswers, PodSource
from koordpolicy.agent.supply import PodSupply
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS
from koordpolicy.linux.cgroups.kubepods import CgroupDriver, Kubepods
from koordpolicy.model.pod import read_pod
from tests.unit.agent import frames
from tests.unit.agent.frames import SECOND

COLLECTION = replace(frames.COLLECTION, most_pods=100)


def pod(name: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "x"}]},
        "status": status,
    }


class FakeKubelet:
    """Answers what it is told to."""

    def __init__(self) -> None:
        self.answer: Sequence[Object] | Unreachable = ()

    async def pods(self, seconds: float) -> Sequence[Object]:
        assert seconds == 3
        if isinstance(self.answer, Unreachable):
            raise self.answer
        return self.answer


class Site:
    def __init__(self, first: PodSource = PodSource.KUBELET) -> None:
        self.now = 0
        self.mirror = Mirror()
        self.kubelet = FakeKubelet()
        self.answers = PodAnswers(first)
        self.pods = KubeletPods(self.kubelet, self.mirror, self.answers, lambda: COLLECTION, lambda: self.now)

    def ask(self, answer: Sequence[Object] | Unreachable) -> bool:
        self.kubelet.answer = answer
        return asyncio.run(self.pods.ask())

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.mirror.objects}


def test_what_was_known_holds_while_a_kubelet_is_gone_or_has_just_begun() -> None:
    site = Site()
    assert site.ask([])  # a node without pods
    site.now = 5 * SECOND
    assert site.ask([pod("a"), pod("b")])
    silences: tuple[Sequence[Object] | Unreachable, ...] = (Unreachable("away"), [])
    for silence in silences:
        site.now += 5 * SECOND
        assert not site.ask(silence)
        assert site.names == {"a", "b"}
        assert site.answers.trouble[PodSource.KUBELET]
    assert site.answers.age(site.now) == 10 * SECOND
    assert site.ask([pod("b")])
    assert site.names == {"b"}
    assert not site.answers.trouble


def test_a_status_that_only_the_kubelet_knows_is_heard() -> None:
    site = Site()
    site.ask([pod("a", phase="Pending")])
    site.ask([pod("a", phase="Running")])
    assert site.mirror.objects["default", "a"]["status"]["phase"] == "Running"


def test_whose_word_holds() -> None:
    answers = PodAnswers(PodSource.KUBELET)
    stale = 30 * SECOND
    assert answers.source(0, stale) is PodSource.KUBELET
    answers.good(PodSource.API_SERVER, 40 * SECOND)
    assert answers.source(40 * SECOND, stale) is PodSource.API_SERVER
    answers.good(PodSource.KUBELET, 50 * SECOND)
    assert answers.source(70 * SECOND, stale) is PodSource.KUBELET
    assert answers.source(90 * SECOND, stale) is PodSource.KUBELET  # the other was silent for longer
    assert answers.age(90 * SECOND) == 40 * SECOND


def test_the_api_server_is_asked_while_the_kubelet_is_silent_and_no_longer() -> None:
    async def story() -> None:
        site = Site()
        site.kubelet.answer = Unreachable("away")
        store = Store(lambda: 1_800_000_000.0)
        cluster = MemoryCluster(store)
        await cluster.create(PODS, {**pod("a"), "metadata": {"name": "a", "namespace": "default"}})

        def informer() -> Informer:
            return Informer(
                cluster, PODS, site.mirror, Backoff(random.random), field_selector="spec.nodeName=n"
            )

        supply = PodSupply(site.answers, site.pods, informer, lambda: COLLECTION, lambda: site.now)
        running = asyncio.create_task(supply.run())
        try:
            await asyncio.sleep(0.05)
            assert not site.mirror.objects
            site.now = 31 * SECOND
            supply.look()
            await asyncio.sleep(0.1)
            supply.look()
            assert site.names == {"a"}
            assert site.answers.source(site.now, COLLECTION.pods_stale_after) is PodSource.API_SERVER
            site.kubelet.answer = [pod("b")]
            assert await site.pods.ask()
            supply.look()
            assert site.names == {"b"}
            assert site.answers.source(site.now, COLLECTION.pods_stale_after) is PodSource.KUBELET
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


def test_groups_of_pods_and_of_the_containers_that_run() -> None:
    statuses = [
        {"name": "main", "containerID": f"containerd://{'a' * 64}", "state": {"running": {}}},
        {"name": "done", "containerID": f"containerd://{'b' * 64}", "state": {"terminated": {}}},
        {"name": "waits", "state": {"waiting": {}}},
    ]
    objs = [
        pod("a", phase="Running", qosClass="Burstable", containerStatuses=statuses),
        pod("over", phase="Succeeded", qosClass="Burstable"),
        pod("../escape", phase="Running", qosClass="Guaranteed"),
        pod("odd", phase="Running", qosClass="Guaranteed"),
    ]
    found = node_pods(((read_pod(one), one) for one in objs), Kubepods(CgroupDriver.CGROUPFS))
    assert {uid: (one.group, dict(one.containers)) for uid, one in found.items()} == {
        "uid-a": (
            "kubepods/burstable/poduid-a",
            {"main": f"kubepods/burstable/poduid-a/{'a' * 64}"},
        ),
        "uid-odd": ("kubepods/poduid-odd", {}),
    }
    assert running_containers({"status": {"containerStatuses": [{"state": 3}]}}) == []

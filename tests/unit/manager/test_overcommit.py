"""The overcommit controller on the in-memory cluster: what it writes, when, and what it leaves alone."""

import asyncio
import json
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.manager.controllers.overcommit import PublishAction
from koordpolicy.model import protocol as wire
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

BATCH = {"resource": "batch"}


def cluster(*specs: dict[str, Any], annotations: dict[str, str] | None = None) -> SmallCluster:
    """A node that has reported, under the built-in pack with these specs on batch resources above it."""
    documents = [document("Overcommit", f"o{at}", {**BATCH, **spec}) for at, spec in enumerate(specs)]
    made = SmallCluster(graph(*documents))
    made.node(annotations=annotations)
    made.report()
    return made


def test_a_node_offers_what_policy_calculates_and_a_second_round_writes_nothing() -> None:
    small = cluster()
    first = small.reconcile()
    assert first is not None
    assert len(first.writes) == 1
    assert small.offered() == {
        "batch-cpu": "50k",  # 100 - 40 - 10
        "batch-memory": str(55 * 2**30),  # 100 - 35 - 10
        "mid-cpu": "0",  # nothing is predicted
        "mid-memory": "0",
    }
    version = small.store.get(resources.NODES, "n")["metadata"]["resourceVersion"]
    second = small.reconcile()
    assert second is not None
    assert second.writes == ()
    assert small.store.get(resources.NODES, "n")["metadata"]["resourceVersion"] == version


class Interrupted(MemoryCluster):
    """A cluster in which a controller hears of a version of the node while it waits for the answer to its write."""

    def __init__(self, small: SmallCluster, version: str) -> None:
        super().__init__(small.store)
        self._controller = small.controller
        self._version = version

    async def patch(self, *arguments: Any, **options: Any) -> Object:
        stored = await super().patch(*arguments, **options)
        self._controller.is_own("n", self._version or _version(stored))
        return stored


def _version(node: Object) -> str:
    return str(node["metadata"]["resourceVersion"])


def test_its_own_amounts_are_no_news_to_it_and_what_others_wrote_is() -> None:
    small = cluster()
    small.reconcile()
    # Annotations of other kinds went with that: what they decide next may go by them.
    assert not small.controller.is_own("n", _version(small.store.get(resources.NODES, "n")))
    small.report(system="30")
    small.reconcile()
    assert small.controller.is_own("n", _version(small.store.get(resources.NODES, "n")))
    labelled = small.store.patch(resources.NODES, "n", MergePatch({"metadata": {"labels": {"a": "b"}}}))
    assert not small.controller.is_own("n", _version(labelled))


@pytest.mark.parametrize(("version", "told"), [("", []), ("someone's", ["n"])])
def test_what_is_heard_of_before_the_answer_to_a_write_is_told_apart_by_it(
    version: str, told: list[str]
) -> None:
    found: list[str] = []
    small = cluster()
    small.reconcile()
    small.report(system="30")
    small.look()
    asyncio.run(small.controller.reconcile(Interrupted(small, version), "n", found.append))
    assert found == told


def test_pods_count_as_they_are_measured() -> None:
    small = cluster()
    small.create(
        resources.PODS,
        {
            "metadata": {"name": "web"},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "20"}}}],
            },
        },
    )
    small.reconcile()
    assert small.offered()["batch-cpu"] == "30k"  # by request until it is measured
    small.report(pods={"web": "5"})
    small.reconcile()
    assert small.offered()["batch-cpu"] == "45k"


@pytest.mark.parametrize(
    ("system", "after", "offered"),
    [
        ("14", 10, "50k"),  # 46 instead of 50: not more than 10 %
        ("16", 10, "44k"),  # 44: more than 10 %
        ("14", 301, "46k"),  # not more, but it is time
        ("14", 300, "50k"),
    ],
)
def test_small_changes_wait(system: str, after: int, offered: str) -> None:
    small = cluster()
    small.reconcile()
    small.seconds += after
    small.report(system=system)
    small.reconcile()
    assert small.offered()["batch-cpu"] == offered


def test_a_commit_that_changes_a_formula_is_written_however_little_it_changes() -> None:
    small = cluster({})
    small.reconcile()
    small.report(system="11")
    small.reconcile()
    assert small.offered()["batch-cpu"] == "50k", "a node that uses a little more waits"
    other = document(
        "ColocationProfile", "other", {"match": {"pods": {"matchLabels": {"a": "b"}}}, "qosClass": "LS"}
    )
    small.graph = graph(document("Overcommit", "o0", BATCH), other)
    small.reconcile()
    assert small.offered()["batch-cpu"] == "50k", "a commit that speaks of something else changes nothing"
    small.graph = graph(document("Overcommit", "o0", {**BATCH, "parameters": {"cpuReclaim": "59%"}}))
    small.reconcile()
    assert small.offered()["batch-cpu"] == "48k"  # 100 - 41 - 11
    small.report(system="12")
    small.reconcile()
    assert small.offered()["batch-cpu"] == "48k", "and then a little more waits again"


def test_rounds_that_change_nothing_do_not_put_off_the_refresh() -> None:
    small = cluster()
    small.reconcile()
    for _ in range(4):
        small.seconds += 100
        small.report(system="11")
        small.reconcile()
    assert small.offered()["batch-cpu"] == "49k"


@pytest.mark.parametrize(("minutes", "kept"), [(15, True), (16, False)])
def test_old_metrics_take_the_resources_away(minutes: int, kept: bool) -> None:
    small = cluster()
    small.reconcile()
    small.seconds += 60 * minutes
    decided = small.reconcile()
    assert decided is not None
    assert ("batch-cpu" in small.offered()) == kept
    origin = json.loads(
        small.store.get(resources.NODES, "n")["metadata"]["annotations"][wire.ORIGIN_EXTENDED_ALLOCATABLE]
    )
    assert origin["resources"][wire.BATCH_CPU] == ("50k" if kept else "0")


def test_old_metrics_may_keep_them() -> None:
    small = cluster({"onMissing": {"action": "Keep"}})
    small.reconcile()
    small.seconds += 3600
    small.reconcile()
    assert small.offered()["batch-cpu"] == "50k"


def test_without_any_metric_nothing_is_offered() -> None:
    small = SmallCluster(graph())
    small.node()
    decided = small.reconcile()
    assert decided is not None
    assert decided.calculations[0].outcome is PublishAction.RESET
    assert small.offered() == {}


def test_a_resource_that_is_not_enabled_goes() -> None:
    small = cluster()
    small.reconcile()
    small.graph = graph(document("Overcommit", "off", {**BATCH, "enabled": False}))
    small.reconcile()
    assert small.offered() == {"mid-cpu": "0", "mid-memory": "0"}


def test_a_formula_that_fails_keeps_what_is_published_and_says_why() -> None:
    small = cluster()
    small.reconcile()
    small.graph = graph(document("Overcommit", "wrong", {**BATCH, "cpu": {"cel": "node.usage.p95.cpu"}}))
    decided = small.reconcile()
    assert decided is not None
    assert decided.writes == ()
    assert "node.usage.p95.cpu" in decided.plan.problems[0]
    assert small.offered()["batch-cpu"] == "50k"


def test_faster_cpus_offer_more_and_other_schedulers_take_their_part() -> None:
    taken = {
        "allocations": [{"name": "yarn", "priority": "koord-batch", "resources": {wire.BATCH_CPU: "5k"}}]
    }
    small = cluster(
        annotations={
            wire.CPU_NORMALIZATION_RATIO: "1.50",
            wire.THIRD_PARTY_ALLOCATIONS: json.dumps(taken),
        }
    )
    small.reconcile()
    assert small.offered()["batch-cpu"] == "70k"
    annotations = small.store.get(resources.NODES, "n")["metadata"]["annotations"]
    assert json.loads(annotations[wire.ORIGIN_EXTENDED_ALLOCATABLE])["resources"][wire.BATCH_CPU] == "75k"


def test_an_unreadable_annotation_deducts_nothing_and_is_reported() -> None:
    small = cluster(annotations={wire.THIRD_PARTY_ALLOCATIONS: "{"})
    decided = small.reconcile()
    assert decided is not None
    assert wire.THIRD_PARTY_ALLOCATIONS in decided.plan.problems[0]
    assert small.offered()["batch-cpu"] == "50k"


def test_zones_offer_their_part() -> None:
    small = cluster()
    half = [
        {"name": name, "capacity": size, "allocatable": size}
        for name, size in (("cpu", "50"), ("memory", "50Gi"))
    ]
    zones = [{"name": f"node-{at}", "type": "Node", "resources": half} for at in range(2)]
    small.create(
        resources.NODE_RESOURCE_TOPOLOGIES,
        {"metadata": {"name": "n"}, "zones": [{"name": "socket-0", "type": "Socket"}, *zones]},
    )
    small.reconcile()
    socket, *found = small.store.get(resources.NODE_RESOURCE_TOPOLOGIES, "n")["zones"]
    assert "resources" not in socket
    for zone in found:
        listed = {one["name"]: one for one in zone["resources"]}
        assert list(listed) == ["cpu", wire.BATCH_CPU, wire.BATCH_MEMORY, "memory"]
        assert {listed[wire.BATCH_CPU][key] for key in ("capacity", "allocatable", "available")} == {"25k"}
        assert listed["cpu"]["allocatable"] == "50"
    decided = small.reconcile()
    assert decided is not None
    assert decided.plan.zones is None


def test_a_policy_of_ones_own_for_a_pool() -> None:
    small = cluster(
        {
            "match": {"nodes": {"matchLabels": {"pool": "dense"}}},
            "cpu": {"cel": "node.capacity.cpu - node.usage.highPriority.cpu - node.usage.system.cpu"},
        }
    )
    small.reconcile()
    assert small.offered()["batch-cpu"] == "50k"
    small.store.patch(resources.NODES, "n", MergePatch({"metadata": {"labels": {"pool": "dense"}}}))
    small.reconcile()
    assert small.offered()["batch-cpu"] == "90k"


def test_a_node_that_is_gone() -> None:
    small = cluster()
    small.reconcile()
    small.store.delete(resources.NODES, "n")
    assert small.reconcile() is None


def test_formulas_read_the_cluster_as_a_whole() -> None:
    share = "node.capacity.cpu * double(cluster.nodes) / double(cluster.pods) + cluster.requested.cpu"
    small = cluster(
        {"cpu": {"cel": share}, "memory": {"cel": "cluster.allocatable.memory - cluster.requested.memory"}}
    )
    small.node("other")
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "20", "memory": "5Gi"}}}]
    }
    for name, more in {"here": {"nodeName": "n"}, "there": {"nodeName": "other"}, "waits": {}}.items():
        small.create(resources.PODS, {"metadata": {"name": name}, "spec": {**pod, **more}})
    for name, phase in {"over": "Succeeded", "waits-no-more": "Failed"}.items():
        spec = {**pod, "nodeName": "other"}
        small.create(resources.PODS, {"metadata": {"name": name}, "spec": spec})
        over = MergePatch({"status": {"phase": phase}})
        small.store.patch(resources.PODS, name, over, namespace="default", subresource="status")
    small.reconcile()
    # 100 x 2 nodes / 3 pods + 40 requested; 200Gi - 10Gi
    assert small.offered()["batch-cpu"] == "106666"
    assert small.offered()["batch-memory"] == str(190 * 2**30)
    small.store.delete(resources.NODES, "other")
    small.reconcile()
    # 100 x 1 node / 3 pods + 20: a pod whose node is gone counts still, what it requests there does not
    assert small.offered()["batch-cpu"] == "53333"
    assert small.offered()["batch-memory"] == str(95 * 2**30)


HOT = {
    "abnormal": {
        "when": {"cel": "node.labels[?'disk'].orValue('') == 'failing'"},
        "after": "2m",
        "wellAfter": "10m",
    }
}


def disk(small: SmallCluster, state: str | None) -> None:
    small.store.patch(resources.NODES, "n", MergePatch({"metadata": {"labels": {"disk": state}}}))


def mark(small: SmallCluster) -> str | None:
    annotations = small.store.get(resources.NODES, "n")["metadata"].get("annotations") or {}
    return annotations.get(wire.ABNORMAL)


def later(small: SmallCluster, seconds: int) -> None:
    """Time passes, the node reports, and is looked at."""
    small.seconds += seconds
    small.report()
    small.reconcile()


def test_an_abnormal_node_offers_nothing_after_a_while_and_something_a_longer_while_after_it_is_well() -> (
    None
):
    small = cluster(HOT)
    small.reconcile()
    disk(small, "failing")
    later(small, 0)
    decided = small.reconcile()
    assert decided is not None
    assert decided.turns_in == 120
    later(small, 119)
    assert (small.offered()["batch-cpu"], mark(small)) == ("50k", None)
    later(small, 1)
    assert ("batch-cpu" in small.offered(), mark(small)) == (False, "batch")
    assert "mid-cpu" in small.offered()
    disk(small, None)
    later(small, 300)
    disk(small, "failing")  # not well for long enough: the time begins anew
    later(small, 1)
    disk(small, None)
    later(small, 599)
    later(small, 599)
    assert (mark(small), small.reconcile().turns_in) == ("batch", 1)  # type: ignore[union-attr]  # it is there
    later(small, 1)
    assert (small.offered()["batch-cpu"], mark(small)) == ("50k", None)


def test_who_leads_next_goes_by_what_the_node_says_and_lets_the_time_begin_anew() -> None:
    small = cluster(HOT)
    disk(small, "failing")
    later(small, 0)
    later(small, 120)
    disk(small, None)
    later(small, 0)
    later(small, 599)
    small.controller.begin()
    later(small, 1)
    assert mark(small) == "batch"
    later(small, 599)
    assert mark(small) == "batch"
    later(small, 1)
    assert mark(small) is None


def test_a_clock_that_is_set_makes_no_node_abnormal_or_well() -> None:
    small = cluster(HOT)
    elapsed = 0
    small.controller.clock = lambda: elapsed
    disk(small, "failing")
    later(small, 0)
    later(small, 86_400)
    assert mark(small) is None
    elapsed = 120 * 10**9
    later(small, -86_400)
    assert mark(small) == "batch"
    disk(small, None)
    later(small, 0)
    later(small, 86_400)
    assert mark(small) == "batch"


def test_an_abnormal_node_may_keep_a_part() -> None:
    small = cluster({"abnormal": {"when": {"cel": "node.name == 'n'"}, "after": "0s", "offers": "30%"}})
    small.reconcile()
    assert small.offered()["batch-cpu"] == "15k"
    small.seconds += 16 * 60  # without metrics nothing can be told of it: it stays as it was
    small.reconcile()
    assert ("batch-cpu" in small.offered(), mark(small)) == (False, "batch")


def test_a_condition_that_fails_changes_nothing() -> None:
    small = cluster({"abnormal": {"when": {"cel": "node.labels['disk'] == 'failing'"}, "after": "0s"}})
    disk(small, "failing")
    small.reconcile()
    assert mark(small) == "batch"
    disk(small, None)
    later(small, 3600)
    decided = small.reconcile()
    assert decided is not None
    assert [one.failed for one in decided.calculations if one.resource == "batch"] == [True]
    assert (mark(small), "batch-cpu" in small.offered()) == ("batch", False)

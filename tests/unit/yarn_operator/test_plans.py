"""What YARN may use of a node, on the in-memory cluster: what is written, when, and what is told."""

import json
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.port import MergePatch
from koordpolicy.model import protocol as wire
from koordpolicy.yarn.nodes import NodeManager, YARNAmounts
from koordpolicy.yarn_operator.plans import SCHEDULER, UNKNOWN, UNREADABLE, YARNNodes, YARNPlan, is_id
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

ID = "nm-0:8041"
GI = 1024
"""Mebibytes."""
NOTHING = YARNAmounts(0, 0)


class Site:
    """A node that offers 50 cores and 55 Gi of batch resources, and its NodeManager."""

    def __init__(self, spec: dict[str, Any] | None = None, annotations: dict[str, str] | None = None) -> None:
        said = {"node.yarn.koordinator.sh": ID, **(annotations or {})}
        self.small = SmallCluster(graph(*([document("YARNNode", "own", spec)] if spec else [])))
        self.small.node(annotations=said)
        self.small.report()
        self.small.reconcile()
        self.seconds = 0.0
        self.nodes = YARNNodes(
            lambda node, labels: self.small.graph, lambda: self.small.nanoseconds, lambda: self.seconds
        )
        self.total, self.used = NOTHING, NOTHING

    def decide(self, *, runs: bool = True) -> YARNPlan | None:
        self.small.look()
        sight = self.small.objects.sight("n")
        assert sight is not None
        manager = self.nodes.manager_of(sight)
        found = NodeManager(ID, "RUNNING", self.total, self.used, 0)
        return self.nodes.decide(sight, manager, {ID: found} if runs else {})

    def step(self, *, runs: bool = True) -> YARNPlan:
        """One round: what is decided is written, and YARN does as it is told."""
        plan = self.decide(runs=runs)
        assert plan is not None
        if plan.step.claim is not None:
            patch = {"metadata": {"annotations": {wire.THIRD_PARTY_ALLOCATIONS: plan.annotation}}}
            self.small.store.patch(resources.NODES, "n", MergePatch(patch))
            self.nodes.claimed("n", plan.step.claim)
        if plan.offer is not None:
            self.total = plan.offer
        return plan

    def annotation(self) -> Any:
        metadata = self.small.store.get(resources.NODES, "n")["metadata"]
        return json.loads(metadata["annotations"].get(wire.THIRD_PARTY_ALLOCATIONS, "null"))

    def pod(self, cpu: str, name: str = "job") -> None:
        amounts = {"kubernetes.io/batch-cpu": cpu, "kubernetes.io/batch-memory": "1Gi"}
        container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
        self.small.create(
            resources.PODS,
            {
                "metadata": {"name": name, "labels": {wire.QOS_CLASS: "BE"}},
                "spec": {"nodeName": "n", "priorityClassName": "koord-batch", "containers": [container]},
            },
        )


def test_it_is_claimed_then_deducted_then_offered() -> None:
    site = Site()
    first = site.step()
    assert first.offer is None
    resources_of = {"kubernetes.io/batch-cpu": "12k", "kubernetes.io/batch-memory": str(14080 * 2**20)}
    allocation = {"name": SCHEDULER, "priority": "koord-batch", "resources": resources_of}
    assert site.annotation() == {"allocations": [allocation]}
    assert site.step().offer is None  # pods may request it still
    site.small.reconcile()
    assert site.small.offered()["batch-cpu"] == "38k"
    found = site.step()
    assert (found.offer, found.grace) == (YARNAmounts(14080, 12), 30_000)
    assert site.step().step.offer is None


def test_it_grows_with_what_its_containers_use_and_pods_take_it_back() -> None:
    site = Site()
    site.step()
    site.small.reconcile()
    site.step()
    site.used = site.total
    site.step()
    site.small.reconcile()
    assert site.step().offer == YARNAmounts(28160, 24)
    site.pod("30k")
    found = site.step()
    assert found.offer is not None
    assert found.offer.vcores == 20  # 50 - 30
    assert site.annotation()["allocations"][0]["resources"]["kubernetes.io/batch-cpu"] == "24k"
    site.step()  # the claim follows what is seen to be offered
    assert site.annotation()["allocations"][0]["resources"]["kubernetes.io/batch-cpu"] == "24k"


def test_where_policy_offers_nothing_it_is_taken_back_and_then_given_to_pods() -> None:
    site = Site()
    site.step()
    site.small.reconcile()
    site.step()
    site.small.graph = graph(document("YARNNode", "own", {"enabled": False, "overCommitTimeout": "1m"}))
    found = site.step()
    assert (found.offer, found.grace, found.step.claim) == (NOTHING, 60_000, None)
    assert site.step().step.claim is not None
    assert site.annotation() is None
    site.small.reconcile()
    assert site.small.offered()["batch-cpu"] == "50k"
    assert site.decide() is not None
    assert site.step().step.offer is None


def test_who_is_gone_keeps_its_claim_for_a_while() -> None:
    site = Site()
    site.step()
    site.small.reconcile()
    site.step()
    found = site.step(runs=False)
    assert (found.reason, found.step.claim, found.offer) == (UNKNOWN, None, None)
    assert ID in found.problem
    site.seconds = 599
    assert site.step(runs=False).step.claim is None
    site.seconds = 600
    site.step(runs=False)
    assert site.annotation() is None


def test_a_claim_that_was_lowered_counts_before_the_cluster_shows_it() -> None:
    site = Site()
    site.step()
    site.small.reconcile()
    site.nodes.claimed("n", site.decide().sharing.used)  # type: ignore[union-attr]
    found = site.decide()
    assert found is not None
    assert found.offer is None


def test_an_offer_that_nobody_answered_stays_claimed() -> None:
    site = Site()
    site.step()
    site.small.reconcile()
    plan = site.decide()
    assert plan is not None
    assert plan.step.offer is not None
    site.nodes.asked("n", plan.step.offer)
    site.small.graph = graph(document("YARNNode", "own", {"enabled": False}))
    found = site.step()
    assert (found.step.claim, found.offer) == (None, NOTHING)  # asked once more, so that it is settled
    site.nodes.answered("n")
    assert site.step().step.claim is not None


def test_others_keep_what_they_have() -> None:
    other = {"name": "slurm", "priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "45k"}}
    said = json.dumps({"allocations": [other], "more": 1})
    site = Site(annotations={wire.THIRD_PARTY_ALLOCATIONS: said})
    site.step()
    found = site.annotation()
    assert found["more"] == 1
    assert found["allocations"][0] == other
    assert found["allocations"][1]["resources"]["kubernetes.io/batch-cpu"] == "5k"


def test_nothing_is_decided_anew_about_a_node_that_is_as_it_was() -> None:
    site = Site()
    for _ in range(3):
        site.step()
        site.small.reconcile()
    known = site.decide()
    assert site.decide() is known
    site.used = site.total
    assert site.step().step.claim is not None
    site.small.reconcile()
    assert site.step().offer == YARNAmounts(28160, 24)
    site.small.graph = graph(document("YARNNode", "own", {"enabled": False}))
    assert site.step().offer == NOTHING


@pytest.mark.parametrize(
    "of", ["now.getHours() >= 0", "node.?metric.age.orValue(duration('1s')) > duration('-1s')"]
)
def test_what_reads_the_time_is_asked_each_time(of: str) -> None:
    site = Site({"enabled": {"cel": of}})
    for _ in range(3):
        site.step()
        site.small.reconcile()
    known = site.decide()
    assert known is not None
    assert known.quiet
    assert site.decide() is not known


def test_what_cannot_be_claimed_is_not_used() -> None:
    site = Site(annotations={wire.THIRD_PARTY_ALLOCATIONS: "{"})
    site.total = YARNAmounts(GI, 1)
    found = site.decide()
    assert found is not None
    assert (found.reason, found.offer, found.step.claim) == (UNREADABLE, NOTHING, None)


def test_what_policy_cannot_say_leaves_all_as_it_is() -> None:
    site = Site({"offer": {"cpu": {"cel": "yarn.used.cpu / (yarn.containers - yarn.containers)"}}})
    site.total = YARNAmounts(GI, 1)
    found = site.decide()
    assert found is not None
    assert found.failed
    assert (found.step.claim, found.offer) == (None, None)


def test_only_what_is_used_is_claimed_as_koordinator_does() -> None:
    site = Site({"claim": "Used", "parameters": {"headroom": "100%"}})
    assert site.step().offer == YARNAmounts(55 * GI, 50)
    assert site.annotation() is None
    site.used = YARNAmounts(2 * GI, 2)
    site.step()
    assert site.annotation()["allocations"][0]["resources"]["kubernetes.io/batch-cpu"] == "2k"


def test_nodes_without_a_node_manager_are_left_alone() -> None:
    site = Site({"nodeManager": ""})
    assert site.decide() is None


def test_vcores_stand_for_as_much_cpu_as_policy_says() -> None:
    site = Site({"vcore": "500m"})
    site.step()
    site.small.reconcile()
    assert site.step().offer == YARNAmounts(14080, 25)


@pytest.mark.parametrize(("text", "right"), [(ID, True), ("nm", False), ("a/b:1", False), ("a:b:1", False)])
def test_ids(text: str, right: bool) -> None:
    assert is_id(text) is right

"""Root quotas of ElasticQuotaProfile objects on the in-memory cluster: what is written, when, and what is told."""

import asyncio
import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cluster.event_handlers import EventHandlers
from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.kube.errors import Forbidden, KubeError
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.mirror import Mirror
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS, NAMESPACES, NODES, Resource
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.manager.controllers.quota_profile import (
    CREATE_FAILED,
    KnownQuotaObjects,
    QuotaProfileController,
    QuotaProfilePlan,
)
from koordpolicy.model.protocol import QUOTA_TOTAL, QUOTA_TREE_ID, QUOTA_UNSCHEDULABLE
from koordpolicy.model.quota import signed_amounts
from tests.hostile.objects import REAL, each_spoiled
from tests.unit.graph.policies_text import graph as graph_without_pack
from tests.unit.manager.clusters import START, cases
from tests.vectors.policies import document, graph

CASES = cases(Path(__file__).with_name("quota_profiles.yaml"))
NODE_POOLS = {"n1": ("a", "8", False), "n2": ("a", "8", True), "n3": ("b", "4", False)}


class Site:
    """Three nodes, and the controller beside them."""

    def __init__(self, policy: Mapping[str, Any] | None = None) -> None:
        self.graph = graph(*([document("QuotaProfile", "own", dict(policy))] if policy else []))
        self.store = Store(lambda: START)
        self.store.create(NAMESPACES, {"metadata": {"name": "team"}})
        self.plans: list[QuotaProfilePlan] = []
        self.told: list[tuple[str, str, str]] = []
        self.profiles, self.quotas, objects = Mirror(), Mirror(), ClusterObjects()
        self._nodes = EventHandlers(
            objects, unreadable=UnreadableObjects(lambda *_: None), wanted=frozenset({NODES})
        ).mirrors[NODES]
        self.controller = QuotaProfileController(
            lambda: self.graph,
            KnownQuotaObjects(self.profiles.objects, self.quotas.objects, lambda: objects.nodes),
            lambda: START * 10**9,
            lambda _, plan: self.plans.append(plan),
            lambda obj, reason, text: self.told.append((obj["metadata"]["name"], reason, text)),
        )
        for name, (pool, cpu, cordoned) in NODE_POOLS.items():
            amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
            self.store.create(
                NODES,
                {
                    "metadata": {"name": name, "labels": {"pool": pool}},
                    "spec": {"unschedulable": cordoned},
                    "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
                },
            )

    def put(self, resource: Resource, name: str, obj: Mapping[str, Any]) -> Object:
        body = {**obj, "metadata": {"name": name, **obj.get("metadata", {})}}
        return self.store.create(resource, body, namespace="team")

    def reconcile(self, cluster: MemoryCluster | None = None) -> bool:
        for resource, mirror in (
            (NODES, self._nodes),
            (ELASTIC_QUOTA_PROFILES, self.profiles),
            (ELASTIC_QUOTAS, self.quotas),
        ):
            listed = self.store.list(resource)
            mirror.replace(listed.items, listed.resource_version)
        return asyncio.run(self.controller.reconcile(cluster or MemoryCluster(self.store), ("team", "p")))

    def quota(self) -> Object | None:
        return self.store.find(ELASTIC_QUOTAS, "root-a", namespace="team")


def _amounts(written: Any) -> dict[str, int]:
    return signed_amounts(written, "")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_becomes_of_a_profile(case: dict[str, Any]) -> None:
    site = Site(case.get("policy"))
    for other in case.get("others", ()):
        site.put(ELASTIC_QUOTA_PROFILES, other["metadata"]["name"], other)
    site.put(ELASTIC_QUOTA_PROFILES, "p", case["profile"])
    if case.get("quota"):
        site.put(ELASTIC_QUOTAS, "root-a", case["quota"])
    wrote = site.reconcile()
    quota = site.quota()
    assert [text for _, _, text in site.told if case.get("told", "?") in text] == [
        text for _, _, text in site.told
    ]
    assert bool(site.told) == ("told" in case)
    assert [plan.failed for plan in site.plans if plan.problem] == (
        [True] if "problem" in case else [False] if "told" in case else []
    )
    if "quota" in case and case["quota"] is None:
        assert (quota, wrote) == (None, False)
        return
    assert quota is not None
    metadata, spec = quota["metadata"], quota["spec"]
    if "labels" in case:
        assert {key: metadata["labels"].get(key) for key in case["labels"]} == case["labels"]
    for bound, amounts in case.get("spec", {}).items():
        assert _amounts(spec[bound]) == _amounts(amounts), bound
    for key, annotation in (("total", QUOTA_TOTAL), ("unschedulable", QUOTA_UNSCHEDULABLE)):
        if key in case:
            assert _amounts(json.loads(metadata["annotations"][annotation])) == _amounts(case[key]), key
    if "tree" in case:
        profile = site.store.get(ELASTIC_QUOTA_PROFILES, "p", namespace="team")
        assert profile["metadata"]["labels"][QUOTA_TREE_ID] == case["tree"]
    version = metadata["resourceVersion"]
    assert not site.reconcile(), "a second round writes nothing"
    again = site.quota()
    assert again is not None
    assert again["metadata"]["resourceVersion"] == version


def test_equal_amounts_stay_as_they_are_written() -> None:
    site = Site()
    site.put(ELASTIC_QUOTA_PROFILES, "p", {"spec": {"quotaName": "root-a", "nodeSelector": {}}})
    assert site.reconcile()
    written = {"spec": {"min": {"cpu": "20000m", "memory": str(48 * 2**30)}}}
    site.store.patch(ELASTIC_QUOTAS, "root-a", MergePatch(written), namespace="team")
    assert not site.reconcile()


def test_nodes_that_come_and_a_quota_that_goes_are_followed() -> None:
    site = Site()
    site.put(ELASTIC_QUOTA_PROFILES, "p", {"spec": {"quotaName": "root-a", "nodeSelector": {}}})
    site.reconcile()
    site.store.delete(NODES, "n1")
    assert site.reconcile()
    quota = site.quota()
    assert quota is not None
    assert quota["spec"]["min"]["cpu"] == "12"
    site.store.delete(ELASTIC_QUOTAS, "root-a", namespace="team")
    assert site.reconcile()
    assert site.quota() is not None
    site.store.delete(ELASTIC_QUOTA_PROFILES, "p", namespace="team")
    assert not site.reconcile()
    assert site.quota() is not None, "a quota outlives its profile"


class Refusing(MemoryCluster):
    """A cluster that lets nobody create quotas."""

    async def create(self, resource: Resource, obj: Object, **more: Any) -> Object:
        if resource is ELASTIC_QUOTAS:
            raise Forbidden("quotas are not for you")
        return await super().create(resource, obj, **more)


def test_a_refused_quota_is_told_of_at_its_profile_and_tried_again() -> None:
    site = Site()
    site.put(ELASTIC_QUOTA_PROFILES, "p", {"spec": {"quotaName": "root-a", "nodeSelector": {}}})
    with pytest.raises(KubeError):
        site.reconcile(Refusing(site.store))
    assert site.told == [("p", CREATE_FAILED, "quotas are not for you")]
    assert site.reconcile()


@pytest.mark.parametrize("resource", [ELASTIC_QUOTA_PROFILES, ELASTIC_QUOTAS], ids=str)
def test_whatever_a_profile_or_a_quota_holds_costs_no_more_than_its_own_tree(resource: Resource) -> None:
    site = Site()
    mirrors = {ELASTIC_QUOTA_PROFILES: site.profiles, ELASTIC_QUOTAS: site.quotas}
    real = {one: copy.deepcopy(REAL[str(one)]) for one in mirrors}
    key = ("team", real[ELASTIC_QUOTA_PROFILES]["metadata"]["name"])
    found = set()
    for number, (_, obj) in enumerate(each_spoiled(real[resource])):
        obj["metadata"]["resourceVersion"] = f"spoiled-{number}"
        for one, mirror in mirrors.items():
            mirror.replace([obj if one is resource else real[one]], str(number))
        plan = asyncio.run(site.controller.decide(key))
        assert plan is not None
        found.add(bool(plan.problem))
        json.dumps([plan.create, plan.patch])
        assert not plan.failed
        assert "internal error" not in plan.problem, plan.problem
    assert found == {True, False}


@pytest.mark.parametrize("text", ["", '{"labels": {"a": "b"}}'])
def test_policies_that_do_not_speak_of_profiles_leave_them_alone(text: str) -> None:
    site = Site()
    documents = [json.dumps(document("ColocationProfile", "p", json.loads(text)))] if text else []
    site.graph = graph_without_pack(*documents)
    site.put(ELASTIC_QUOTA_PROFILES, "p", {"spec": {"quotaName": "root-a", "nodeSelector": {}}})
    assert not site.reconcile()
    assert (site.controller.every(), site.controller.retry_after()) == (None, 0.0)


def test_what_a_policy_leaves_out_without_a_pack_is_as_the_kind_says() -> None:
    site = Site()
    site.graph = graph_without_pack(json.dumps(document("QuotaProfile", "own", {"keys": ["cpu"]})))
    site.put(ELASTIC_QUOTA_PROFILES, "p", {"spec": {"quotaName": "root-a", "nodeSelector": {}}})
    assert site.reconcile()
    assert (site.controller.every(), site.controller.retry_after()) == (10.0, 2.0)


def test_how_often_and_how_soon_again_is_policy() -> None:
    site = Site({"interval": "3s", "retryAfter": "500ms"})
    assert (site.controller.every(), site.controller.retry_after()) == (3.0, 0.5)
    assert (Site().controller.every(), Site().controller.retry_after()) == (10.0, 2.0)

"""Recommendations on the in-memory cluster: whose use counts, what is written, when, and what the next leader knows."""

import asyncio
import json
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster
from koordpolicy.kube.port import MergePatch, Object
from koordpolicy.manager.controllers.recommendation import RecommendationController
from koordpolicy.manager.recommender.checkpoints import checkpoint_text, read_checkpoint
from koordpolicy.manager.recommender.histories import MOST_CONTAINERS, Histories
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.manager.recommender.status import recommended_in
from koordpolicy.model.protocol import RECOMMENDED_BOUNDS, USAGE_HISTORY
from koordpolicy.model.reading import ObjectError
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

KEY = ("default", "web")
MINUTE = 60
DAY = 86_400


class Site:
    """A small cluster with a node, whose manager keeps Recommendations."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.small = SmallCluster(graph(*documents))
        self.small.node()
        self.told: list[str] = []
        self.lookups: list[str] = []
        self.controller = self.leader()

    def leader(self) -> RecommendationController:
        """Another leader, that knows nothing but what objects say."""
        controller = RecommendationController(
            lambda: self.small.graph,
            self.small.objects,
            lambda key: self.small.store.find(resources.RECOMMENDATIONS, key[1], namespace=key[0]),
            Owners(self.lookups.append),
            lambda: self.small.nanoseconds,
            lambda _, problem, key: self.told.append(problem),
        )
        for obj in self.small.store.list(resources.RECOMMENDATIONS).items:
            controller.heard((obj["metadata"]["namespace"], obj["metadata"]["name"]), obj)
        return controller

    def recommendation(self, name: str = "web", **target: Any) -> None:
        spec = {"target": target or {"type": "workload", "workload": {"kind": "Deployment", "name": "web"}}}
        obj = self.small.create(resources.RECOMMENDATIONS, {"metadata": {"name": name}, "spec": spec})
        self.controller.heard(("default", name), obj)

    def deployment(self, name: str = "web") -> None:
        """A Deployment and its ReplicaSet."""
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
        owner = self.small.create(resources.DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})
        self.small.create(
            resources.REPLICA_SETS,
            {
                "metadata": {"name": f"{name}-1", "ownerReferences": [_owner("Deployment", owner)]},
                "spec": spec,
            },
        )

    def pod(self, name: str = "web-1-a", workload: str = "web", **requests: dict[str, str]) -> None:
        """A running pod of that Deployment, with these containers."""
        replica_set = self.small.store.find(resources.REPLICA_SETS, f"{workload}-1", namespace="default")
        owners = [] if replica_set is None else [_owner("ReplicaSet", replica_set)]
        containers = [
            {"name": container, "image": "i", "resources": {"requests": amounts}}
            for container, amounts in (requests or {"app": {}}).items()
        ]
        self.small.create(
            resources.PODS,
            {
                "metadata": {"name": name, "labels": {"app": workload}, "ownerReferences": owners},
                "spec": {"nodeName": "n", "containers": containers},
            },
        )
        self.small.store.patch(
            resources.PODS,
            name,
            MergePatch({"status": {"phase": "Running"}}),
            namespace="default",
            subresource="status",
        )

    def report(self, times: int = 1, seconds: int = MINUTE, **cpu: str) -> int:
        """The node reports what pods use, so many times; how many samples the last one gave."""
        samples = 0
        for _ in range(times):
            self.small.seconds += seconds
            self.small.report(pods={name.replace("_", "-"): amount for name, amount in cpu.items()})
            self.small.look()
            sight = self.small.objects.sight("n")
            assert sight is not None
            assert sight.metric is not None
            samples = self.controller.reported(sight.metric)
            self.look_up()
        return samples

    def look_up(self) -> None:
        while self.lookups:
            asyncio.run(self.controller.owners.look_up(MemoryCluster(self.small.store), self.lookups.pop()))

    def reconcile(self, key: tuple[str, str] = KEY, *, checkpoint: bool = False) -> bool:
        return asyncio.run(
            self.controller.reconcile(MemoryCluster(self.small.store), key, checkpoint=checkpoint)
        )

    def get(self, name: str = "web") -> Object:
        return self.small.store.get(resources.RECOMMENDATIONS, name, namespace="default")

    def targets(self, name: str = "web") -> dict[str, Any]:
        return {
            one["containerName"]: one["resources"]
            for one in self.get(name)["status"]["podStatus"]["containerStatuses"]
        }

    def conditions(self, name: str = "web") -> dict[str, tuple[str, str]]:
        return {one["type"]: (one["status"], one["reason"]) for one in self.get(name)["status"]["conditions"]}


def _owner(kind: str, owner: Object) -> dict[str, Any]:
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


@pytest.fixture
def site() -> Site:
    made = Site()
    made.deployment()
    made.recommendation()
    made.pod()
    return made


CPU_OF_HALF_A_CORE = int(0.025 * (1.05**15 - 1) / 0.05 * 1000 * 1.1)
"""The end of the bucket of 500m and a tenth."""


def test_a_deployment_is_recommended_what_its_pods_used(site: Site) -> None:
    assert site.report(web_1_a="500m") == 0  # nobody knows yet whose the ReplicaSet is
    assert site.report(5, web_1_a="500m") == 1
    assert site.reconcile()
    assert site.targets()["app"]["cpu"] == f"{CPU_OF_HALF_A_CORE}m"
    found = recommended_in(site.get())["app"]["memory"]
    assert 10 * 2**30 * 1.1 < found.target < 10 * 2**30 * 1.1 * 1.05
    assert site.conditions() == {
        "NoObjectsMatched": ("False", "Reported"),
        "LowConfidence": ("True", "ShortHistory"),
    }


def test_bounds_stand_beside_the_target(site: Site) -> None:
    site.report(80, web_1_a="500m")
    site.report(19, web_1_a="1")
    site.report(1, web_1_a="4")
    site.reconcile()
    found = recommended_in(site.get())["app"]["cpu"]
    assert 500 < found.lower < 700
    assert 1000 < found.target < 1300
    assert 4000 < found.upper < 5000
    assert (
        json.loads(site.get()["metadata"]["annotations"][RECOMMENDED_BOUNDS])["app"]["lower"]["cpu"]
        == f"{found.lower}m"
    )


def test_after_a_day_it_can_be_relied_on(site: Site) -> None:
    site.report(2, web_1_a="500m")
    site.report(25, 3600, web_1_a="500m")
    site.reconcile()
    assert site.conditions()["LowConfidence"] == ("False", "Sufficient")


def test_nothing_is_written_twice_and_small_changes_wait(site: Site) -> None:
    site.report(3, web_1_a="500m")
    assert site.reconcile()
    version = site.get()["metadata"]["resourceVersion"]
    assert not site.reconcile()
    site.report(3, web_1_a="510m")
    assert not site.reconcile()
    assert site.get()["metadata"]["resourceVersion"] == version
    site.report(3, web_1_a="2")
    assert site.reconcile()


def test_conditions_keep_the_time_of_their_change(site: Site) -> None:
    site.report(3, web_1_a="500m")
    site.reconcile()
    before = site.get()["status"]["conditions"][0]["lastTransitionTime"]
    site.report(9, web_1_a="4")
    site.reconcile()
    assert site.get()["status"]["conditions"][0]["lastTransitionTime"] == before
    assert site.get()["status"]["updateTime"] != before


def test_it_is_written_now_and_then_though_nothing_changed(site: Site) -> None:
    site.report(3, web_1_a="500m")
    site.reconcile()
    site.report(26, 3600, web_1_a="500m")
    site.reconcile()
    site.report(1, DAY - 60, web_1_a="500m")
    assert not site.reconcile()
    site.report(1, 60, web_1_a="500m")
    assert site.reconcile()


def test_the_next_leader_knows_what_was_written(site: Site) -> None:
    site.report(100, web_1_a="500m")
    site.report(20, web_1_a="2")
    assert site.reconcile(checkpoint=True)
    targets, before = site.targets(), site.controller.histories.of(KEY)["app"]
    site.controller = site.leader()
    after = site.controller.histories.of(KEY)["app"]
    assert (after.since, after.last) == (before.since, before.last)
    assert not site.reconcile()
    site.small.store.patch(
        resources.RECOMMENDATIONS,
        "web",
        MergePatch({"status": None}),
        namespace="default",
        subresource="status",
    )
    site.reconcile()
    assert site.targets() == targets


def test_a_history_that_cannot_be_read_begins_anew(site: Site) -> None:
    site.small.store.patch(
        resources.RECOMMENDATIONS,
        "web",
        MergePatch({"metadata": {"annotations": {USAGE_HISTORY: "{]"}}}),
        namespace="default",
    )
    site.controller = site.leader()
    assert "begins anew" in site.told[0]
    assert site.controller.histories.of(KEY) == {}
    site.report(3, web_1_a="500m")
    assert site.reconcile(checkpoint=True)
    assert set(read_checkpoint(site.get()["metadata"]["annotations"][USAGE_HISTORY], "here")) == {"app"}


def test_checkpoints_wait_for_their_time_and_the_oldest_come_first(site: Site) -> None:
    site.recommendation("other", type="podSelector", podSelector={"matchLabels": {"app": "web"}})
    site.report(3, web_1_a="500m")
    assert site.controller.due() == [("default", "other"), KEY]
    site.reconcile(("default", "other"), checkpoint=True)
    assert site.controller.due() == [KEY]
    site.reconcile(checkpoint=True)
    assert site.controller.due() == []
    site.small.seconds += 11 * MINUTE
    assert site.controller.due() == []  # nothing came since
    site.report(1, web_1_a="500m")
    assert set(site.controller.due()) == {("default", "other"), KEY}


def test_no_more_checkpoints_than_policy_allows() -> None:
    site = Site(document("Recommendation", "slow", {"checkpoint": {"mostPerMinute": 1}}))
    for name in ("a", "b"):
        site.recommendation(name, type="podSelector", podSelector={"matchLabels": {"app": "web"}})
    site.pod()
    site.report(1, web_1_a="500m")
    assert site.controller.due() == [("default", "a")]


def test_containers_share_by_what_they_request(site: Site) -> None:
    site.deployment("two")
    site.recommendation("two", type="workload", workload={"kind": "Deployment", "name": "two"})
    site.pod("two-1-a", "two", app={"cpu": "3", "memory": "1Gi"}, proxy={"cpu": "1", "memory": "1Gi"})
    site.report(2, two_1_a="4")
    site.report(30, 3600, two_1_a="4")
    site.reconcile(("default", "two"))
    found = recommended_in(site.get("two"))
    assert 3000 < found["app"]["cpu"].target < 3000 * 1.2
    assert 1000 < found["proxy"]["cpu"].target < 1000 * 1.2
    assert found["app"]["memory"].target == found["proxy"]["memory"].target
    assert site.conditions("two")["LowConfidence"] == ("True", "SharedUse")


def test_pods_by_their_labels_and_a_pod_without_any_controller() -> None:
    site = Site()
    site.recommendation(type="podSelector", podSelector={"matchLabels": {"app": "solo"}})
    site.pod("solo", "solo")
    site.pod("another", "another")
    assert site.report(1, solo="1", another="1") == 1


def test_workloads_of_other_names_do_not_count(site: Site) -> None:
    site.deployment("other")
    site.pod("other-1-a", "other")
    assert site.report(3, other_1_a="500m") == 0
    site.reconcile()
    assert site.conditions() == {"NoObjectsMatched": ("True", "NotReported")}


def test_policy_says_whose_use_counts() -> None:
    site = Site(document("Recommendation", "batch", {"counted": {"cel": "pod.name != 'web-1-a'"}}))
    site.recommendation(type="podSelector", podSelector={"matchLabels": {"app": "web"}})
    site.pod()
    site.pod("web-1-b")
    assert site.report(1, web_1_a="1", web_1_b="1") == 1


def test_policy_says_which_are_followed() -> None:
    site = Site(
        document(
            "Recommendation", "off", {"match": {"condition": "workload.name == 'web'"}, "enabled": False}
        )
    )
    site.deployment()
    site.recommendation()
    site.pod()
    assert site.report(3, web_1_a="1") == 0
    assert not site.reconcile()


@pytest.mark.parametrize(
    ("spec", "low", "high"),
    [
        ({"cpu": {"margin": "100%"}}, 1000, 1100),
        ({"cpu": {"minimum": "3"}}, 3000, 3000),
        ({"cpu": {"maximum": "100m"}}, 100, 100),
        ({"cpu": {"target": {"cel": "workload.container == 'app' ? percent(50) : percent(90)"}}}, 500, 600),
        (
            {"cpu": {"margin": {"cel": "workload.history < duration('1h') ? percent(100) : percent(0)"}}},
            1000,
            1100,
        ),
        ({"cpu": {"buckets": {"first": "1"}}}, 1100, 1100),
    ],
)
def test_policy_says_what_is_recommended(spec: dict[str, Any], low: int, high: int) -> None:
    site = Site(document("Recommendation", "own", spec))
    site.deployment()
    site.recommendation()
    site.pod()
    site.report(9, web_1_a="500m")
    site.reconcile()
    assert low <= recommended_in(site.get())["app"]["cpu"].target <= high


def test_another_revision_with_other_buckets_keeps_the_history(site: Site) -> None:
    site.report(50, web_1_a="500m")
    site.small.graph = graph(document("Recommendation", "own", {"cpu": {"buckets": {"growth": "20%"}}}))
    site.reconcile()
    assert 500 < recommended_in(site.get())["app"]["cpu"].target < 500 * 1.1 * 1.3
    assert site.controller.histories.of(KEY)["app"].layouts["cpu"].growth == pytest.approx(0.2)


def test_buckets_that_cannot_be_are_told_and_leave_what_there_is(site: Site) -> None:
    site.report(50, web_1_a="500m")
    site.reconcile()
    targets = site.targets()
    site.small.graph = graph(
        document(
            "Recommendation",
            "own",
            {"cpu": {"buckets": {"growth": {"cel": "percent(workload.container.size() - 3)"}}}},
        )
    )
    site.report(5, web_1_a="4")
    assert not site.reconcile()
    assert "write more than 0%" in site.told[-1]
    assert site.targets() == targets


def test_what_is_not_reported_for_long_is_forgotten(site: Site) -> None:
    site.report(5, web_1_a="500m")
    site.reconcile(checkpoint=True)
    site.small.seconds += 8 * DAY
    site.reconcile(checkpoint=True)
    assert site.targets() == {}
    assert site.controller.histories.count == 0
    assert USAGE_HISTORY not in site.get()["metadata"]["annotations"]
    assert site.conditions()["NoObjectsMatched"] == ("True", "NotReported")


def test_no_more_containers_than_policy_allows() -> None:
    site = Site(document("Recommendation", "small", {"history": {"containers": 2}}))
    site.recommendation(type="podSelector", podSelector={"matchLabels": {"app": "web"}})
    site.pod("many", "web", a={}, b={}, c={})
    assert site.report(1, many="1") == 2
    assert site.controller.histories.count == 2
    assert "2 containers are remembered already" in site.told[-1]


def test_names_of_containers_without_end_do_not_fill_an_object() -> None:
    site = Site()
    site.recommendation(type="podSelector", podSelector={"matchLabels": {"app": "web"}})
    site.pod("many", "web", **{f"c{at}": {} for at in range(MOST_CONTAINERS + 5)})
    assert site.report(1, many="1") == MOST_CONTAINERS
    text = checkpoint_text(site.controller.histories.of(KEY))
    assert len(text) < 128 * 1024


def test_a_clock_that_is_ahead_ruins_no_history(site: Site) -> None:
    site.report(50, web_1_a="500m")
    site.small.seconds += 100 * 366 * DAY
    site.small.report(pods={"web-1-a": "8"})
    site.small.look()
    site.small.seconds -= 100 * 366 * DAY
    sight = site.small.objects.sight("n")
    assert sight is not None
    assert sight.metric is not None
    assert site.controller.reported(sight.metric) == 1
    site.reconcile()
    assert recommended_in(site.get())["app"]["cpu"].target == CPU_OF_HALF_A_CORE


def test_a_report_counts_once(site: Site) -> None:
    site.report(2, web_1_a="500m")
    sight = site.small.objects.sight("n")
    assert sight is not None
    assert sight.metric is not None
    assert site.controller.reported(sight.metric) == 0


def test_one_that_is_gone_is_forgotten(site: Site) -> None:
    site.report(2, web_1_a="500m")
    assert site.controller.histories.count == 1
    site.small.store.delete(resources.RECOMMENDATIONS, "web", namespace="default")
    site.controller.heard(KEY, None)
    assert site.controller.histories.count == 0
    assert site.controller.due() == []
    assert not site.reconcile()
    assert site.report(1, web_1_a="500m") == 0


def test_another_target_begins_anew(site: Site) -> None:
    site.report(2, web_1_a="500m")
    target = {"type": "podSelector", "podSelector": {"matchLabels": {"app": "x"}}}
    site.small.store.patch(
        resources.RECOMMENDATIONS, "web", MergePatch({"spec": {"target": target}}), namespace="default"
    )
    site.controller.heard(KEY, site.get())
    assert site.controller.histories.count == 0
    assert site.report(1, web_1_a="500m") == 0


def test_what_is_written_by_ourselves_is_no_news_and_what_others_write_is() -> None:
    site = Site(
        document("Recommendation", "own", {"counted": {"cel": "!('off' in workload.annotations)"}}),
    )
    site.deployment()
    site.recommendation()
    site.pod()
    site.report(2, web_1_a="500m")
    assert site.reconcile(checkpoint=True)
    assert not site.controller.heard(KEY, site.get())
    assert site.report(1, web_1_a="500m") == 1
    off = MergePatch({"metadata": {"annotations": {"off": ""}}})
    site.small.store.patch(resources.RECOMMENDATIONS, "web", off, namespace="default")
    assert site.controller.heard(KEY, site.get())
    assert site.report(1, web_1_a="500m") == 0
    assert site.controller.histories.count == 1


def test_an_object_that_names_no_pods_says_so(site: Site) -> None:
    site.recommendation("bad", type="workload")
    assert site.reconcile(("default", "bad"))
    assert site.conditions("bad") == {"ConfigUnsupported": ("True", "Unreadable")}
    assert not site.reconcile(("default", "bad"))
    assert not Histories().count


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"a": 1}',
        '{"a": {}}',
        '{"a": {"since": "2026-07-01T08:00:00Z", "last": "x"}}',
        '{"a": {"since": "2026-07-01T08:00:00Z", "last": "2026-07-01T08:00:00Z", "cpu": {"first": -1}}}',
    ],
)
def test_checkpoints_that_are_none(text: str) -> None:
    with pytest.raises(ObjectError, match="here"):
        read_checkpoint(text, "here")


def test_any_part_of_a_checkpoint_may_be_wrong(site: Site) -> None:
    site.report(3, web_1_a="500m")
    text = checkpoint_text(site.controller.histories.of(KEY))
    sound = json.loads(text)["app"]["cpu"]
    for field in sound:
        spoilings: tuple[Any, ...] = (None, -1, "x", [], 1e300, {"9999": 1}, {"-1": 1}, {"1": -1}, {"1": 1e9})
        for wrong in spoilings:
            spoilt = json.loads(text)
            spoilt["app"]["cpu"][field] = wrong
            if (field, wrong) in (("totalWeight", 1e300), ("bucketWeights", None), ("most", 1e300)):
                continue
            with pytest.raises(ObjectError, match="here"):
                read_checkpoint(json.dumps(spoilt), "here")
